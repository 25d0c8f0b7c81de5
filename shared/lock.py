"""A file that one process at a time holds, by a lock that the kernel drops when it dies."""

import fcntl
import os
import socket
from pathlib import Path
from typing import Self


def describe_process() -> str:
    """This process, as another one would look for it."""
    return f"process {os.getpid()} on {socket.gethostname()}"


class Lock:
    """The file says who holds it. A child that inherits `fileno` holds it with its parent."""

    def __init__(self, path: Path) -> None:
        """Opens the file, which makes it; raises OSError."""
        self._file = path.open("a+")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def fileno(self) -> int:
        """The descriptor that the lock belongs to."""
        return self._file.fileno()

    def take(self) -> bool:
        """False while another process holds it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._file.truncate(0)
        self._file.write(describe_process())
        self._file.flush()
        return True

    def owner(self) -> str:
        """Who holds it, or was the last to; empty when nobody said so."""
        self._file.seek(0)
        return self._file.read().strip()
