"""Just enough HTTP/1.1: a request with a Content-Length, a whole or a chunked response."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Coroutine
from http.client import responses
from typing import Any, NamedTuple, Self

from tests.fake_llama.script import State

JSON = "application/json; charset=utf-8"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nAccess-Control-Allow-Origin: \r\n"
    b"X-Accel-Buffering: no\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n"
)


class Request(NamedTuple):
    method: str
    path: str
    body: bytes


class Closed(Exception):
    """The connection is over, and the call on it ends in `state`."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.state: State = state


class Connection:
    """One client; entered with `async with`, which closes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._refused = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    @property
    def gone(self) -> bool:
        """Whether the client has closed: it sends nothing while it waits for an answer."""
        return self._reader.at_eof() or self._reader.exception() is not None

    def check(self) -> None:
        if self.gone:
            raise Closed("cancelled")

    async def unless_gone(self, wait: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Waits for `wait()`; raises Closed as soon as the client has left."""
        waiting = asyncio.create_task(wait())
        leaving = asyncio.create_task(self._until_gone())
        try:
            await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise Closed("cancelled")
        finally:
            waiting.cancel()
            leaving.cancel()
            await asyncio.wait({waiting, leaving})

    async def read_request(self) -> Request | None:
        """The next request, or None when there will be none: an error response closes."""
        if self._refused:
            return None
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            method, path, length = parse_head(head)
            return Request(method, path, await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def respond(
        self, status: int, content: bytes, content_type: str = JSON, more: str = ""
    ) -> None:
        """`more` are header fields, each with its line end."""
        self._refused = status >= 400
        keep = "Connection: close" if self._refused else "Keep-Alive: timeout=5, max=100"
        head = (
            f"HTTP/1.1 {status} {responses.get(status, 'Unknown')}\r\nServer: llama.cpp\r\n"
            f"Access-Control-Allow-Origin: \r\n{more}Content-Type: {content_type}\r\n"
            f"Content-Length: {len(content)}\r\n{keep}\r\n\r\n"
        )
        await self._write(head.encode() + content)

    async def begin_stream(self) -> None:
        await self._write(STREAM_HEAD)

    async def write_chunk(self, data: bytes) -> None:
        await self._write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end_stream(self) -> None:
        await self._write(b"0\r\n\r\n")

    def reset(self) -> None:
        """Ends the connection with RST."""
        linger = struct.pack("ii", 1, 0)
        peer: socket.socket = self._writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.abort()

    def abort(self) -> None:
        """Ends the connection at once, without what is not yet sent."""
        self._writer.transport.abort()

    async def _until_gone(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self._reader.read()

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        try:
            await self._writer.drain()
        except ConnectionError:
            raise Closed("cancelled") from None


def parse_head(head: bytes) -> tuple[str, str, int]:
    """The method, the path without its query, and the length of the body."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    fields = {name.lower(): value for name, _, value in (line.partition(":") for line in lines)}
    return method, target.partition("?")[0], int(fields.get("content-length", 0))
