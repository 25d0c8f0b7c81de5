"""One transaction on the saver's own connection, whatever becomes of who asked for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiosqlite

from worker.checkpoints import TurnSaver

DRAIN_S = 5.0
"""How long a put that is under way may take to land."""

Connection = aiosqlite.Connection
T = TypeVar("T")


async def transact(saver: TurnSaver, work: Callable[[Connection], Awaitable[T]]) -> T:
    """What `work` answers, once it is committed; nothing of it stays when it raises.

    Raises TimeoutError when puts do not land in DRAIN_S, and sqlite3.Error.
    """
    # In a task of its own, so that neither a cancelled caller cuts it in two nor, below Python
    # 3.11.3, a timeout in such a caller raises the wrong error.
    return await asyncio.shield(asyncio.create_task(_transact(saver, work)))


async def _transact(saver: TurnSaver, work: Callable[[Connection], Awaitable[T]]) -> T:
    async with asyncio.timeout(DRAIN_S) as patience, saver.gate.alone(), saver.lock:
        patience.reschedule(None)
        connection = saver.conn
        # A cancelled put may have left its INSERT in the connection's queue, where this comes after
        # it and takes it back.
        await connection.rollback()
        await connection.execute("BEGIN IMMEDIATE")
        try:
            answer = await work(connection)
            await connection.commit()
        except BaseException:
            await connection.rollback()
            raise
        return answer
