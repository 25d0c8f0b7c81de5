"""Listens in on the wire between the service and a model server."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Wiretap:
    """What went over all connections, in order, by direction."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.answered = bytearray()

    def answered_text(self) -> str:
        """The content deltas of all streamed answers, joined."""
        events = re.findall(rb"^data: (\{.*\})\r?$", bytes(self.answered), re.MULTILINE)
        choices = [choice for event in events for choice in json.loads(event).get("choices", ())]
        return "".join(choice["delta"].get("content") or "" for choice in choices)


@asynccontextmanager
async def tap(base_url: str) -> AsyncGenerator[tuple[str, Wiretap]]:
    """A relay in front of `base_url`: its own base URL, and what it hears."""
    target = urlsplit(base_url)
    wire = Wiretap()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward_reader, onward_writer = await asyncio.open_connection(target.hostname, target.port)
        with suppress(ConnectionError):
            await asyncio.gather(
                _copy(reader, onward_writer, wire.sent.extend),
                _copy(onward_reader, writer, wire.answered.extend),
            )

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}{target.path}", wire


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hear: Callable[[bytes], None]
) -> None:
    while data := await reader.read(65_536):
        hear(data)
        writer.write(data)
        await writer.drain()
    writer.close()
