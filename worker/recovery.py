"""What a worker that died has left behind, put in order before the first turn is taken."""

import logging
import time

import msgspec

from shared.claims import Claims
from shared.errors import Fenced
from shared.record import TurnRecord
from worker.conclusion import CANCELLED, Account, Outcome
from worker.ending import Ending
from worker.failures import WORKER_LOST
from worker.fence import Fence
from worker.insist import insist
from worker.memory import Memory
from worker.settlement import already_settled, lift, tell, undo
from worker.tally import Tally

log = logging.getLogger(__name__)


async def recover(claims: Claims, memory: Memory) -> None:
    """Tells what was not told, restores what was open, ends the turn that was running."""
    await _tell_untold(claims, memory)
    fences = await memory.fences()
    for fence in fences:
        if fence.state == "running":
            await _end_open_turn(claims, memory, fence)
        else:
            await lift(memory, fence)
    failed = [fence.thread_id for fence in await memory.fences()]
    await insist(lambda: claims.set_quarantined(failed))
    await _end_left_running(claims, memory)


async def _tell_untold(claims: Claims, memory: Memory) -> None:
    for ending in await memory.untold():
        try:
            await tell(claims, memory, ending)
        except Fenced:
            # Redis has forgotten the claim. The end is told when the turn is claimed again.
            log.warning("The end of turn %s could not be told.", ending.turn.turn_id)


async def _end_open_turn(claims: Claims, memory: Memory, fence: Fence) -> None:
    turn = await insist(lambda: claims.claim(fence.turn_id))
    known = turn or msgspec.json.decode(fence.record, type=TurnRecord)
    await _end(claims, memory, known)


async def _end_left_running(claims: Claims, memory: Memory) -> None:
    """The turn that was claimed and had not begun."""
    left = await insist(claims.left_running)
    turn = await insist(lambda: claims.claim(left)) if left else None
    if turn:
        await _end(claims, memory, turn)


async def _undo(memory: Memory, turn: TurnRecord) -> Ending:
    account = Account(turn, Tally(), lambda: turn.age_s(time.time()))
    outcome = CANCELLED if turn.status == "cancelling" else Outcome(WORKER_LOST)
    return await undo(memory, account, outcome)


async def _end(claims: Claims, memory: Memory, turn: TurnRecord) -> None:
    ending = await already_settled(memory, turn) or await _undo(memory, turn)
    try:
        await tell(claims, memory, ending)
    except Fenced as error:
        log.error("Turn %s could not be ended: %s", turn.turn_id, error)
    else:
        log.warning("Turn %s was left running and has ended: %s.", turn.turn_id, ending.outcome)
