"""A line to Redis that can be cut, or die unnoticed, at the worst moment."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path


class Line:
    """Passes bytes on, until a command is sent whose answer it was told to lose."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._last_words: bytes | None = None
        self._dead = asyncio.Event()
        self.cuts = 0

    def cut_after(self, command: bytes) -> None:
        """The next connection that sends these bytes breaks once Redis has done what they say."""
        self._last_words = command

    def die(self) -> None:
        """Nothing passes any more on the connections that there are, and nobody is told."""
        self._dead.set()
        self._dead = asyncio.Event()

    async def serve(self, near: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        far, commands = await asyncio.open_unix_connection(self._socket)
        lost, dead = asyncio.Event(), self._dead
        try:
            async with asyncio.TaskGroup() as passing:
                forth = passing.create_task(self._send(near, commands, lost, dead))
                back = passing.create_task(self._answer(far, answers, lost, dead))
                await asyncio.wait({forth, back}, return_when=asyncio.FIRST_COMPLETED)
                forth.cancel()
                back.cancel()
        finally:
            answers.close()
            commands.close()

    async def _send(
        self,
        near: asyncio.StreamReader,
        commands: asyncio.StreamWriter,
        lost: asyncio.Event,
        dead: asyncio.Event,
    ) -> None:
        with suppress(ConnectionError):
            while data := await near.read(65536):
                if dead.is_set():
                    continue
                if self._last_words and self._last_words in data:
                    self._last_words = None
                    lost.set()
                commands.write(data)
                await commands.drain()

    async def _answer(
        self,
        far: asyncio.StreamReader,
        answers: asyncio.StreamWriter,
        lost: asyncio.Event,
        dead: asyncio.Event,
    ) -> None:
        with suppress(ConnectionError):
            while data := await far.read(65536):
                if dead.is_set():
                    continue
                if lost.is_set():
                    self.cuts += 1
                    return
                answers.write(data)
                await answers.drain()


@asynccontextmanager
async def open_line(url: str, folder: Path) -> AsyncGenerator[tuple[Line, str]]:
    """A line to the server of a `unix://` URL, and the URL of its near end in `folder`."""
    line = Line(Path(url.removeprefix("unix://")))
    near_end = folder / "line.sock"
    async with asyncio.TaskGroup() as connections:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.create_task(line.serve(reader, writer))

        async with await asyncio.start_unix_server(accept, near_end):
            yield line, f"unix://{near_end}"
