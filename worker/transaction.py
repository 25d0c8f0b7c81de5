"""The saver's own connection, when it is not LangGraph that writes.

Whatever becomes of who asked: the work is done in a task of its own, so that neither a cancelled
caller cuts it in two nor, below Python 3.11.3, a timeout in such a caller raises the wrong error.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import aiosqlite

from worker.checkpoints import TurnSaver

DRAIN_S = 5.0
"""How long a put that is under way may take to land."""

LOCKED_S = 60.0
"""How long another process may keep the database from being written to."""

BUSY_S = 1.0
"""How long one try waits for it."""

PUT_S = 5.0
"""How long LangGraph's own writes do."""

log = logging.getLogger(__name__)

Connection = aiosqlite.Connection
T = TypeVar("T")
Work = Callable[[Connection], Awaitable[T]]


async def transact(saver: TurnSaver, work: Work[T], *, locked_s: float | None = None) -> T:
    """What `work` answers, once it is committed; nothing of it stays when it raises.

    `locked_s`: how long to try while another process writes, LOCKED_S by default. Raises
    TimeoutError when puts do not land in DRAIN_S, and sqlite3.Error.
    """
    patience = time.monotonic() + (LOCKED_S if locked_s is None else locked_s)
    return await asyncio.shield(asyncio.create_task(_transact(saver, work, patience)))


async def look(saver: TurnSaver, work: Work[T]) -> T:
    """What `work` reads; another process that writes to the database does not keep it from that.

    Raises as `transact` does.
    """
    return await asyncio.shield(asyncio.create_task(_look(saver, work)))


async def _transact(saver: TurnSaver, work: Work[T], patience: float) -> T:
    while True:
        # Others, who only read or end a turn, come between two tries.
        async with _alone(saver) as connection:
            if await _has_begun(connection, patience):
                try:
                    answer = await work(connection)
                    await connection.commit()
                finally:
                    await connection.rollback()  # of what was not committed
                return answer


async def _has_begun(connection: Connection, patience: float) -> bool:
    """Begins to write unless another process does: giving up would cost a turn, or a thread."""
    left = patience - time.monotonic()
    await connection.execute(f"PRAGMA busy_timeout = {1000 * max(0.0, min(left, BUSY_S)):.0f}")
    try:
        await connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not is_locked(error) or time.monotonic() >= patience:
            raise
        log.warning("Another process is writing to the database.")
        return False
    finally:
        await connection.execute(f"PRAGMA busy_timeout = {1000 * PUT_S:.0f}")
    return True


def is_locked(error: Exception) -> bool:
    """Another process keeps the database from being written to."""
    code = getattr(error, "sqlite_errorcode", 0)  # extended: its last byte is the kind
    return code & 0xFF == sqlite3.SQLITE_BUSY


async def _look(saver: TurnSaver, work: Work[T]) -> T:
    async with _alone(saver) as connection:
        return await work(connection)


@asynccontextmanager
async def _alone(saver: TurnSaver) -> AsyncGenerator[Connection]:
    """The connection, with nothing under way on it."""
    async with asyncio.timeout(DRAIN_S) as patience, saver.gate.alone(), saver.lock:
        patience.reschedule(None)
        # A cancelled put may have left its INSERT in the connection's queue, where this comes after
        # it and takes it back.
        await saver.conn.rollback()
        yield saver.conn
