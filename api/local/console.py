"""The one terminal that several processes write to."""

import asyncio
import errno
import os
import sys

from api.client.terminal import clean

PREFIX = "{:<6} | "
GONE = (errno.EPIPE, errno.EIO)


class Console:
    """Lines on standard output, each with the name of who says it.

    `gone` is set when nobody reads them any more: a closed terminal, or the other end of a pipe.
    """

    def __init__(self, gone: asyncio.Event) -> None:
        self._gone = gone

    def tell(self, name: str, line: str) -> None:
        """Writes a line of the part `name`."""
        self.write(PREFIX.format(name) + clean(line))

    def write(self, text: str) -> None:
        """Writes a line as it is; one that the disk, say, has no room for is lost."""
        rest = f"{text}\n".encode(errors="replace")
        try:
            while rest:
                # Unbuffered: what could not be written must not come back at the end.
                rest = rest[os.write(sys.stdout.fileno(), rest) :]
        except OSError as error:
            if error.errno in GONE:
                self._gone.set()
