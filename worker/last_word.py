"""The last word of a worker that does not stop in order: its turn waits, and has not crashed."""

import asyncio
import logging
import sqlite3
from contextlib import suppress

import aiosqlite

from shared.claims import Claims
from shared.errors import TurnkeeperError
from shared.lane import Lane
from shared.record import TurnRecord
from shared.redis import Redis, open_redis
from shared.turns import Turns
from worker import ledger
from worker.checkpoints import name_file
from worker.settings import WorkerSettings

PATIENCE_S = 1.0
LOCKED_S = 0.2

log = logging.getLogger(__name__)


def say_last_word(settings: WorkerSettings) -> None:
    """For a thread beside an event loop that may be blocked: it uses nothing of it."""
    log.warning("The worker does not stop in order; %s.", asyncio.run(_let_go_in_time(settings)))
    logging.shutdown()


async def _let_go_in_time(settings: WorkerSettings) -> str:
    try:
        async with asyncio.timeout(PATIENCE_S), open_redis(settings.REDIS_URL) as redis:
            turn_id = await let_go(redis, settings)
    except (TimeoutError, TurnkeeperError, sqlite3.Error) as error:
        reason = str(error) or type(error).__name__
        return f"Redis is not told ({reason}), and the next start puts all in order"
    return f"the next start goes on with turn {turn_id}" if turn_id else "no turn was running"


async def let_go(redis: Redis, settings: WorkerSettings) -> str | None:
    """Has the running turn wait again, if there is one; its id. What it has not told is lost.

    One that has ended is left alone: what it has not told is in the outbox, under its numbers.
    Raises sqlite3.Error, RedisAway, Fenced and UnknownTurn.
    """
    turn_id = await Lane(redis, settings.lifetimes).left_running()
    if turn_id is None:
        return None
    turn = await Turns(redis, settings.lifetimes).read(turn_id)
    async with aiosqlite.connect(name_file(settings.CHECKPOINT_DB), timeout=LOCKED_S) as database:
        # So that it does not end after all; whoever else writes keeps the turn from that, too.
        with suppress(sqlite3.OperationalError):
            await database.execute("BEGIN IMMEDIATE")
        if await ledger.find_end(database, turn) is None:
            await _requeue(Claims(redis, settings.lifetimes), turn)
    return turn_id


async def _requeue(claims: Claims, turn: TurnRecord) -> None:
    told = await claims.requeue(turn, turn.seq + 1)
    if told.state == "behind":  # something was told meanwhile
        await claims.requeue(turn, told.last + 1)
