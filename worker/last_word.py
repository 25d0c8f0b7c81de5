"""The last word of a worker that does not stop in order: its turn waits, and has not crashed."""

import asyncio
import logging
import sqlite3

import aiosqlite
from msgspec.structs import replace

from shared import characters
from shared.claims import Claims
from shared.errors import TurnkeeperError
from shared.record import TurnRecord
from shared.redis import open_redis
from worker import ledger
from worker.checkpoints import name_file
from worker.fence import rewrite_record
from worker.settings import WorkerSettings
from worker.transaction import is_locked
from worker.turns import TurnRunner

PATIENCE_S = 1.0
LOCKED_S = 0.2

log = logging.getLogger(__name__)


def say_last_word(settings: WorkerSettings, runner: TurnRunner) -> None:
    """For a thread beside an event loop that may be blocked: it uses nothing of it."""
    if turn := runner.held:
        came_of_it = asyncio.run(note_and_requeue(turn, settings))
        log.warning("The worker does not stop in order; %s.", came_of_it)
    else:
        log.warning("The worker does not stop in order; no turn was running.")
    logging.shutdown()


async def note_and_requeue(turn: TurnRecord, settings: WorkerSettings) -> str:
    """Has the turn wait again, as far as database and Redis can be told in time; what came of it.

    What it has not told is lost. One that has ended is left alone.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            if await _note(turn, settings):
                return f"turn {turn.turn_id} has ended"
            async with open_redis(settings.REDIS_URL) as redis:
                await Claims(redis, settings.lifetimes).let_wait(turn)
    except (TimeoutError, TurnkeeperError, sqlite3.Error) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        return f"not all is said of turn {turn.turn_id} ({reason})"
    return f"the next start goes on with turn {turn.turn_id}"


async def _note(turn: TurnRecord, settings: WorkerSettings) -> bool:
    """Notes in the database that the turn waits; True if it has ended there."""
    record = characters.encode(replace(turn, status="queued")).decode()
    async with aiosqlite.connect(name_file(settings.CHECKPOINT_DB), timeout=LOCKED_S) as database:
        try:
            await database.execute("BEGIN IMMEDIATE")
            await rewrite_record(database, turn.turn_id, record)
            await database.commit()
        except sqlite3.OperationalError as error:
            if not is_locked(error):  # perhaps by the worker's own thread: Redis is told alone
                raise
        return await ledger.find_end(database, turn) is not None
