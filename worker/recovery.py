"""What a worker that died has left behind, put in order before the first turn is taken."""

import logging
import sqlite3
import time

import msgspec

from shared.claims import Claims
from shared.errors import Fenced
from shared.record import ENDED, TurnRecord
from worker.conclusion import CANCELLED, Account, Outcome
from worker.ending import Ending
from worker.errors import DatabaseUnusable
from worker.failures import WORKER_LOST
from worker.fence import Fence
from worker.insist import insist
from worker.memory import Memory
from worker.settlement import lift, tell, undo
from worker.tally import Tally

log = logging.getLogger(__name__)


async def recover(claims: Claims, memory: Memory) -> None:
    """Tells what was not told, restores what was open, ends the turn that was running.

    Raises DatabaseUnusable.
    """
    try:
        await _tell_untold(claims, memory)
        for fence in await memory.fences():
            await _restore(claims, memory, fence)
        failed = [fence.thread_id for fence in await memory.fences()]
        await insist(lambda: claims.set_quarantined(failed))
        await _end_left_running(claims, memory)
    except (sqlite3.Error, TimeoutError) as error:
        raise DatabaseUnusable(f"CHECKPOINT_DB cannot be put in order: {error}") from error


async def _tell_untold(claims: Claims, memory: Memory) -> None:
    for ending in await memory.untold():
        turn_id = ending.turn.turn_id
        try:
            await tell(claims, memory, ending)
        except Fenced:
            # Redis has forgotten this claim: the end is told when the turn is claimed again. Unless
            # it knows of another end, which stands.
            log.warning("The end of turn %s could not be told.", turn_id)
            if await insist(lambda turn_id=turn_id: claims.status(turn_id)) in ENDED:
                await memory.told(turn_id)


async def _restore(claims: Claims, memory: Memory, fence: Fence) -> None:
    """A running turn is ended; of one that has ended, only the thread is left to put in order."""
    turn = await insist(lambda: claims.claim(fence.turn_id))
    if turn:
        await _end(claims, memory, turn)
    elif fence.state == "failed" or await insist(lambda: claims.status(fence.turn_id)) in ENDED:
        await lift(memory, fence)
    elif forgotten := _read_record(fence):
        await _end(claims, memory, forgotten)
    else:
        await lift(memory, fence)


def _read_record(fence: Fence) -> TurnRecord | None:
    try:
        return msgspec.json.decode(fence.record, type=TurnRecord)
    except msgspec.MsgspecError as error:
        log.error("Turn %s cannot be read: %s", fence.turn_id, type(error).__name__)
        return None


async def _end_left_running(claims: Claims, memory: Memory) -> None:
    """The turn that was claimed and had not begun."""
    left = await insist(claims.left_running)
    turn = await insist(lambda: claims.claim(left)) if left else None
    if turn:
        await _end(claims, memory, turn)


async def _end(claims: Claims, memory: Memory, turn: TurnRecord) -> None:
    ending = await memory.end_of(turn) or await _undo(memory, turn)
    try:
        await tell(claims, memory, ending)
    except Fenced as error:
        log.error("Turn %s could not be ended: %s", turn.turn_id, error)
    else:
        log.warning("Turn %s was left running and has ended: %s.", turn.turn_id, ending.outcome)


async def _undo(memory: Memory, turn: TurnRecord) -> Ending:
    account = Account(turn, Tally(), lambda: turn.age_s(time.time()))
    outcome = CANCELLED if turn.status == "cancelling" else Outcome(WORKER_LOST)
    return await undo(memory, account, outcome)
