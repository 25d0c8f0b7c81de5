"""The data folder, which belongs to one `turnkeeper up` at a time."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from api.local.errors import CannotStart
from shared.lock import Lock

LOCK = "up.lock"
PRIVATE = 0o700
OWNER = re.compile(r"process (\d+) on (.*)")
RETRY_S = 0.1


@asynccontextmanager
async def own_folder(folder: Path) -> AsyncGenerator[Lock]:
    """Makes the folder and holds it; raises CannotStart.

    The processes of an `up` that was killed hold it until they have stopped: they are waited for.
    """
    with _lock_of(make_folder(folder)) as lock:
        while not lock.take():
            if not _is_dead(lock.owner()):
                raise CannotStart(f"The folder {folder} is in use by {lock.owner() or 'others'}.")
            await asyncio.sleep(RETRY_S)
        yield lock


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
    return CannotStart(f"The folder {folder} cannot be used for data: {error.strerror}.")


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
