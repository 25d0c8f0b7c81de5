"""The end of a turn in the database: what it did is kept, or the thread is what it was before."""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from shared.claims import Claims
from shared.record import Failure, TurnRecord
from worker.conclusion import DONE, Account, Outcome
from worker.ending import Ending
from worker.failures import ROLLBACK_FAILED
from worker.fence import Fence
from worker.insist import insist
from worker.memory import Memory
from worker.rollback import RestoreFailed

NOT_KEPT = (sqlite3.Error, TimeoutError)
"""What the database may answer to a transaction."""

NOT_SAVED = Outcome(Failure("agent", "What the turn did could not be saved."))

log = logging.getLogger(__name__)


async def keep(memory: Memory, account: Account, decide: Callable[[], Outcome]) -> Ending:
    """Commits the turn, unless in the last moment `decide` says otherwise or the database fails."""
    try:
        await memory.drain()
        # The one place where commit and cancel are decided: a cancel that comes later is too late.
        if (outcome := decide()) is DONE:
            ending = account.conclude(DONE)
            await memory.commit(ending)
            await _shorten(memory, account.turn)
            return ending
    except NOT_KEPT as error:
        log.error("Turn %s could not be saved: %s", account.turn.turn_id, error)
        outcome = NOT_SAVED
    return await undo(memory, account, outcome)


async def _shorten(memory: Memory, turn: TurnRecord) -> None:
    """Before the turn's end is told, so that a thread does not change between two turns."""
    [error] = await asyncio.gather(memory.shorten(turn), return_exceptions=True)
    if error:  # the thread is whole all the same, and longer
        log.warning("Thread %s cannot be sealed: %r", turn.thread_id, error)


async def undo(memory: Memory, account: Account, outcome: Outcome) -> Ending:
    """Restores the turn's thread; one that cannot be restored is quarantined."""
    turn = account.turn
    try:
        fence = await memory.fence_of(turn.thread_id)
        if fence and fence.belongs_to(turn):
            ending = account.conclude(outcome, await memory.count_added(fence))
            await memory.restore(fence, ending)
            return ending
    except (*NOT_KEPT, RestoreFailed) as error:
        log.error("Thread %s is quarantined: %s", turn.thread_id, error)
        ending = account.conclude(Outcome(ROLLBACK_FAILED))
        return await _write_down(memory.quarantine(ending), ending)
    ending = account.conclude(outcome, 0)  # it has never begun
    return await _write_down(memory.write_down(ending), ending)


async def _write_down(writing: Awaitable[None], ending: Ending) -> Ending:
    try:
        await writing
    except NOT_KEPT as error:
        # Redis is told all the same; and a fence stands until the next start finds it.
        log.error("The end of turn %s is not in the database: %s", ending.turn.turn_id, error)
    return ending


async def abandon(memory: Memory, turn: TurnRecord) -> None:
    """Restores the thread of a turn that is not over: it will be begun again, or by another."""
    try:
        fence = await memory.fence_of(turn.thread_id)
        if fence and fence.belongs_to(turn):
            await memory.restore(fence, None)
    except (*NOT_KEPT, RestoreFailed) as error:
        # The fence stands, so that no turn begins on what is left of this one.
        log.error("Thread %s cannot be restored: %s", turn.thread_id, error)


async def lift(memory: Memory, fence: Fence) -> bool:
    """Tries once more to restore a thread whose turn has ended; answers whether that worked."""
    try:
        await memory.restore(fence, None)
    except (*NOT_KEPT, RestoreFailed) as error:
        log.error("Thread %s stays quarantined: %s", fence.thread_id, error)
        return False
    log.warning("Thread %s is restored and takes turns again.", fence.thread_id)
    return True


async def already_settled(memory: Memory, turn: TurnRecord) -> Ending | None:
    """The end of a turn that Redis believes to be open, because it has forgotten it."""
    ended = await memory.end_of(turn.turn_id)
    return replace(ended, turn=turn) if ended else None


async def tell(claims: Claims, memory: Memory, ending: Ending) -> None:
    """Says to Redis that a turn has ended, until it knows; raises Fenced."""
    await insist(lambda: claims.finish(ending.turn, ending.chunk, ending.failure))
    await memory.told(ending.turn.turn_id)
