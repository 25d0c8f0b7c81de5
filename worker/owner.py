"""One worker for one database, proved by a lock that the kernel drops when the process dies.

A lease in Redis would not do: with the event loop blocked for longer than the lease, a second
worker ran the same turn beside the first.
"""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from shared.heartbeat import EXPIRE_S, RENEW_S, read_heartbeat
from shared.lock import Lock
from shared.redis import Redis
from worker.errors import DatabaseTaken, DatabaseUnusable, QueueTaken
from worker.insist import insist

RETRY_S = 0.1

log = logging.getLogger(__name__)


def describe_database(database: Path) -> str:
    """The file, on this machine."""
    return f"{database.resolve()} on {socket.gethostname()}"


@asynccontextmanager
async def own(database: Path, *, wait: bool) -> AsyncGenerator[None]:
    """Holds the lock beside `database`; raises DatabaseTaken, or waits for the owner to go.

    Raises DatabaseUnusable when there can be no lock.
    """
    told = False
    with _lock_of(database) as lock:
        while not _take(lock):
            owner = lock.owner() or "a worker"
            if not wait:
                raise DatabaseTaken(f"{database} belongs to {owner}.")
            if not told:
                log.info("Waiting for %s: it has %s.", owner, database)
                told = True
            await asyncio.sleep(RETRY_S)
        yield


async def await_queue(redis: Redis, database: Path, *, wait: bool) -> None:
    """Returns when no other worker is seen to serve this queue; raises QueueTaken.

    The lock speaks for one database only. Of this one, a heartbeat is that of a worker that died;
    of another, it is that of a living one if it does not expire.
    """
    patience = time.monotonic() + EXPIRE_S + RENEW_S
    told = False
    while beat := await insist(lambda: read_heartbeat(redis)):
        if beat.database == describe_database(database):
            return
        if not wait and time.monotonic() > patience:
            raise QueueTaken(f"The queue belongs to {beat.worker}, with {beat.database}.")
        if not told:
            log.info("Waiting for %s: it serves the queue, with %s.", beat.worker, beat.database)
            told = True
        await asyncio.sleep(RETRY_S)


def _take(lock: Lock) -> bool:
    try:
        return lock.take()
    except OSError as error:
        raise DatabaseUnusable(f"CHECKPOINT_DB cannot be locked: {error}") from error


def _lock_of(database: Path) -> Lock:
    file = database.resolve()  # one database by all of its names
    try:
        return Lock(file.with_name(file.name + ".lock"))
    except OSError as error:
        raise DatabaseUnusable(f"CHECKPOINT_DB cannot be locked: {error}") from error
