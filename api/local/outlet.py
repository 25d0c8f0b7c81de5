"""What a process says, by the line."""

import asyncio
import os
from collections.abc import AsyncGenerator
from typing import Self

READ_BYTES = 65_536


class Outlet:
    """A pipe of our own.

    With one of asyncio's, waiting for a process is waiting for its pipe too, which a process that
    an agent has started can hold open.
    """

    def __init__(self, reader: asyncio.StreamReader, pipe: asyncio.ReadTransport, end: int) -> None:
        self.end = end
        self._reader = reader
        self._pipe = pipe

    @classmethod
    async def open(cls) -> Self:
        """`end` is for the process to write into, and is closed here with `leave_end`."""
        source, end = os.pipe()
        reader = asyncio.StreamReader()
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", buffering=0)
        )
        return cls(reader, pipe, end)

    def leave_end(self) -> None:
        """Leaves the end to the process, so that the lines end with it."""
        os.close(self.end)

    def close(self) -> None:
        """Reads no more."""
        self._pipe.close()

    async def lines(self) -> AsyncGenerator[str]:
        """The lines; one without end comes in pieces."""
        rest = b""
        while data := await self._reader.read(READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
            if len(rest) > READ_BYTES:
                yield rest.decode(errors="replace")
                rest = b""
        if rest:
            yield rest.decode(errors="replace")
