"""The one terminal that several processes write to."""

import asyncio
import os
import sys
from pathlib import Path

PREFIX = "{:<6} | "


class Console:
    """Lines on standard output, each with the name of who says it.

    `gone` is set when nobody reads them any more: a closed terminal, or the other end of a pipe.
    """

    def __init__(self, gone: asyncio.Event) -> None:
        self._gone = gone

    def tell(self, name: str, line: str) -> None:
        """Writes a line of the part `name`."""
        self.write(PREFIX.format(name) + line)

    def write(self, line: str) -> None:
        """Writes a line as it is."""
        try:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        except OSError:
            self._fall_silent()

    def _fall_silent(self) -> None:
        self._gone.set()
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
