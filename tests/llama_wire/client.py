"""A client that writes down every HTTP chunk it is sent."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Self

from tests.llama_wire.recording import Answer, Request

PING = ":\n\n"
SILENCE_S = 20.0
"""After so long without an answer a test has failed."""


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.head = ""
        self.chunks: list[str] = []
        self.on_ping: Callable[[], None] = lambda: None

    async def ask(self, request: Request) -> Self:
        self.head, self.chunks = "", []
        body = request.body.encode()
        head = f"{request.method} {request.path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        await self._writer.drain()
        return self

    async def answer(self) -> Answer:
        """The answer to its end, however it ends."""
        try:
            async with asyncio.timeout(SILENCE_S):
                await self._read()
        except asyncio.IncompleteReadError:
            return Answer(self.head, self.chunks, "eof")
        except ConnectionResetError:
            return Answer(self.head, self.chunks, "reset")
        return Answer(self.head, self.chunks, "end")

    async def beginning(self, n_chunks: int) -> Answer:
        """The answer's head and first chunks; the rest is left unread."""
        async with asyncio.timeout(SILENCE_S):
            await self._read_head()
            while len(self.chunks) < n_chunks:
                await self._read_chunk()
        return Answer(self.head, self.chunks, "client_close")

    async def _read(self) -> None:
        if not self.head:
            await self._read_head()
        if "Transfer-Encoding: chunked" in self.head:
            while await self._read_chunk():
                pass
        else:
            length = re.search(r"Content-Length: (\d+)", self.head)
            body = await self._reader.readexactly(int(length[1]) if length else 0)
            self.chunks.append(body.decode())
        if "Connection: close" in self.head:
            self.chunks += [rest.decode() async for rest in self._reader]

    async def _read_head(self) -> None:
        head = await self._reader.readuntil(b"\r\n\r\n")
        self.head = head.decode().removesuffix("\r\n\r\n")

    async def _read_chunk(self) -> bool:
        """Whether it was not the last."""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        chunk = (await self._reader.readexactly(size + 2))[:size].decode()
        if chunk == PING:
            self.on_ping()
        if chunk:
            self.chunks.append(chunk)
        return size > 0


@asynccontextmanager
async def connect(port: int) -> AsyncGenerator[Client]:
    """A connection, which the client closes with the block."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
