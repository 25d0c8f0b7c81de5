"""The one terminal that several processes write to."""

import asyncio
import errno
import os
import sys
import threading
from contextlib import suppress
from queue import Full, Queue

from api.client.terminal import clean

PREFIX = "{:<6} | "
GONE = (errno.EPIPE, errno.EIO)
KEPT_LINES = 10_000
FAREWELL_S = 1.0


class Console:
    """Lines on standard output, each with the name of who says it.

    They are written by a thread: nobody may read them for a while, and what is lost then is lines,
    not the service. `gone` is set when nobody will ever read them: a closed terminal, or the other
    end of a pipe.
    """

    def __init__(self, gone: asyncio.Event) -> None:
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._lines: Queue[str | None] = Queue(KEPT_LINES)
        self._writer = threading.Thread(target=self._write_lines, daemon=True)
        self._writer.start()

    def tell(self, name: str, line: str) -> None:
        """Writes a line of the part `name`."""
        self.write(PREFIX.format(name) + clean(line))

    def write(self, text: str) -> None:
        """Writes a line as it is, unless too many wait already."""
        try:
            self._lines.put_nowait(text)
        except Full:
            return

    def close(self) -> None:
        """Lets the last lines out, if somebody reads them."""
        try:
            self._lines.put(None, timeout=FAREWELL_S)
        except Full:
            return
        self._writer.join(FAREWELL_S)

    def _write_lines(self) -> None:
        while (line := self._lines.get()) is not None:
            self._write(f"{line}\n".encode(errors="replace"))

    def _write(self, rest: bytes) -> None:
        """Unbuffered; what there is no room for, on a full disk say, is lost."""
        try:
            while rest:
                rest = rest[os.write(sys.stdout.fileno(), rest) :]
        except OSError as error:
            if error.errno in GONE:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._gone.set)
