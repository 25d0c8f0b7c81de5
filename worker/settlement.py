"""The end of a turn in the database: what it did is kept, or the thread is what it was before."""

import logging
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial

from shared.record import Failure, TurnRecord
from worker.conclusion import DONE, Account, Outcome
from worker.ending import Ending
from worker.failures import ROLLBACK_FAILED
from worker.fence import Fence
from worker.memory import Memory
from worker.rollback import RestoreFailed
from worker.seal import HeadGone
from worker.state import StateUnreadable

UNUSABLE = (sqlite3.Error, TimeoutError)
"""What the database may answer."""

NOT_SAVED = Outcome(Failure("agent", "The database cannot be written to."))

log = logging.getLogger(__name__)


async def keep(memory: Memory, account: Account, decide: Callable[[], Outcome]) -> Ending:
    """Commits the turn, unless in the last moment `decide` says otherwise or the database fails."""
    try:
        await memory.drain()
        # The one place where commit and cancel are decided: a cancel that comes later is too late.
        outcome = decide()
        ending = account.conclude(outcome)
        if outcome is DONE:
            await memory.commit(ending)
    except UNUSABLE as error:
        log.error("Turn %s could not be saved: %s", account.turn.turn_id, error)
        return await undo(memory, account, NOT_SAVED)
    if outcome is not DONE:
        return await undo(memory, account, outcome)
    await _shorten(memory, account.turn)
    return ending


async def _shorten(memory: Memory, turn: TurnRecord) -> None:
    """Before the turn's end is told, so that a thread does not change between two turns."""
    try:
        await memory.shorten(turn)
    except (*UNUSABLE, StateUnreadable, HeadGone) as error:  # it is whole all the same, and longer
        log.warning("Thread %s cannot be sealed: %s", turn.thread_id, type(error).__name__)
        log.debug("Thread %s", turn.thread_id, exc_info=error)


async def undo(memory: Memory, account: Account, outcome: Outcome) -> Ending:
    """Restores the turn's thread; one that cannot be restored is quarantined."""
    turn = account.turn
    try:
        fence = await memory.fence_of(turn.thread_id)
        if fence and fence.belongs_to(turn):
            ending = account.conclude(outcome, await _count(memory, fence, turn))
            await memory.restore(fence, ending)
            return ending
    except (*UNUSABLE, RestoreFailed) as error:
        log.error("Thread %s is quarantined: %s", turn.thread_id, error)
        ending = account.conclude(Outcome(ROLLBACK_FAILED))
        return await _write_down(memory, partial(memory.quarantine, ending), ending)
    ending = account.conclude(outcome, 0)  # it has never begun
    return await _write_down(memory, partial(memory.write_down, ending), ending)


async def _count(memory: Memory, fence: Fence, turn: TurnRecord) -> int | None:
    try:
        return await memory.count_added(fence, turn.agent)
    except (*UNUSABLE, StateUnreadable) as error:  # which may be what has failed the turn
        log.warning("Messages of turn %s: %s", turn.turn_id, type(error).__name__)
        return None


async def _write_down(
    memory: Memory, write: Callable[[], Awaitable[None]], ending: Ending
) -> Ending:
    try:
        await write()
    except UNUSABLE as error:
        # Redis is told all the same; and a fence stands until the next start finds it.
        log.error("The end of turn %s is not in the database yet: %s", ending.turn.turn_id, error)
        memory.owe(write)
    return ending


async def abandon(memory: Memory, turn: TurnRecord) -> None:
    """Restores the thread of a turn that is not over: it will be begun again, or by another."""
    try:
        fence = await memory.fence_of(turn.thread_id)
        if fence and fence.belongs_to(turn):
            await memory.restore(fence, None)
    except (*UNUSABLE, RestoreFailed) as error:
        # The fence stands: nothing begins on what is left, and when the turn does, it goes first.
        log.error("Thread %s cannot be restored: %s", turn.thread_id, error)


async def lift(memory: Memory, fence: Fence) -> bool:
    """Tries once more to restore a thread whose turn has ended; answers whether that worked.

    Raises what the database may answer when it cannot be noted that it did not.
    """
    try:
        await memory.lift(fence)
    except (*UNUSABLE, RestoreFailed) as error:
        log.error("Thread %s is quarantined: %s", fence.thread_id, error)
        if fence.state != "failed":
            await memory.give_up(fence)
        return False
    log.warning("Thread %s is restored and takes turns again.", fence.thread_id)
    return True
