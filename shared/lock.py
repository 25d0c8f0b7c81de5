"""A file that one process at a time holds, by a lock that the kernel drops when it dies."""

import fcntl
import os
import socket
from pathlib import Path
from typing import Self


def describe_process(pid: int | None = None) -> str:
    """A process of this machine, this one by default, as another one would look for it."""
    return f"process {pid or os.getpid()} on {socket.gethostname()}"


LONGEST_OWNER = 300
"""Bytes."""


class Lock:
    """The file says who holds it. A child that inherits `fileno` holds it with its parent."""

    def __init__(self, path: Path) -> None:
        """Opens the file, which makes it; raises OSError."""
        self.fileno = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fileno)

    def take(self) -> bool:
        """False while another process holds it; raises OSError when it cannot be written."""
        try:
            fcntl.flock(self.fileno, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.ftruncate(self.fileno, 0)
        os.pwrite(self.fileno, describe_process().encode(), 0)
        return True

    def owner(self) -> str:
        """Who holds it, or was the last to; empty when nobody said so."""
        return os.pread(self.fileno, LONGEST_OWNER, 0).decode(errors="replace").strip()
