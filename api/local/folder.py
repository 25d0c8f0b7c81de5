"""The data folder, which belongs to one `turnkeeper up` at a time."""

import asyncio
import os
import re
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from api.local.console import Console
from api.local.errors import CannotStart
from shared.lock import Lock

LOCK = "up.lock"
PRIVATE = 0o700
OWNER = re.compile(r"process (\d{1,9}) on (.*)")
RETRY_S = 0.1
HEIRS_S = 30.0
"""More than Valkey, which holds the folder, may take to end."""


@asynccontextmanager
async def own_folder(folder: Path, console: Console) -> AsyncGenerator[Lock]:
    """Makes the folder and holds it; raises CannotStart."""
    with _lock_of(make_folder(folder)) as lock:
        if not _take(lock, folder):
            await _await_heirs(lock, folder, console)
        yield lock


def _take(lock: Lock, folder: Path) -> bool:
    try:
        return lock.take()
    except OSError as error:
        raise _unusable(folder, error) from None


async def _await_heirs(lock: Lock, folder: Path, console: Console) -> None:
    """Waits for the processes of an `up` that was killed, which hold the folder until they stop."""
    owner = lock.owner() or "another process"
    if not _is_dead(owner):
        raise CannotStart(f"The folder {folder} is in use by {owner}.")
    console.tell("up", f"waiting for what {owner} has left running")
    patience = time.monotonic() + HEIRS_S
    while not _take(lock, folder):
        if time.monotonic() > patience:
            raise CannotStart(f"The folder {folder} is in use by what {owner} has left running.")
        await asyncio.sleep(RETRY_S)


def make_folder(folder: Path) -> Path:
    """The folder, made if need be for its owner alone; raises CannotStart."""
    try:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from None
    return folder


def _lock_of(folder: Path) -> Lock:
    try:
        return Lock(folder / LOCK)
    except OSError as error:
        raise _unusable(folder, error) from None


def _unusable(folder: Path, error: OSError) -> CannotStart:
    return CannotStart(f"The folder {folder} cannot be used for data: {error.strerror or error}.")


def _is_dead(owner: str) -> bool:
    match = OWNER.fullmatch(owner)
    if not match or match[2] != socket.gethostname():
        return False
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
