"""One go at a turn: begun, or gone on with, and driven until it ends or is broken off."""

import asyncio
import logging
from functools import partial
from typing import NamedTuple

from shared.chunks import RewindReason
from worker.conclusion import Outcome
from worker.errors import NotNow
from worker.failures import ROLLBACK_FAILED, ThreadQuarantined
from worker.lost import stand_in
from worker.memory import Memory
from worker.numbering import AHEAD
from worker.rewind import find_reason, set_right
from worker.rollback import RestoreFailed
from worker.run import Run, drive, read_input
from worker.settlement import NOT_SAVED, UNUSABLE
from worker.standing import NOTHING, Standing
from worker.transaction import is_locked
from worker.translate import Translator

log = logging.getLogger(__name__)


async def attempt(run: Run, memory: Memory, halt: asyncio.Future[Outcome]) -> Outcome:
    """Runs the turn, unless `halt` has come before.

    Raises Fenced, NotNow, and what the agent raises.
    """
    begun = halt.result() if halt.done() else await _begin(run, memory)
    if isinstance(begun, Outcome):
        for chunk in stand_in(run.turn, run.log):
            run.publisher.put(chunk)
        return begun
    run.publisher.limit(begun.bound, partial(_reserve, run, memory))
    reason = find_reason(run.log.entries, run.turn.attempt)
    _tell_what_stands(run, begun.standing, run.translator, reason, run.log.lost)
    given = None if begun.landed else read_input(run.turn)
    return await drive(run, given, memory.gate, halt)


class _Begun(NamedTuple):
    landed: bool
    bound: int
    standing: Standing


async def _begin(run: Run, memory: Memory) -> _Begun | Outcome:
    """Begins the turn, or answers why it cannot."""
    turn = run.turn
    try:
        landed, bound = await memory.begin(turn, None if run.log.lost else run.log.mark)
    except UNUSABLE as error:
        if is_locked(error):  # by another process; the turn can wait for that
            raise NotNow(f"The database is locked: {error}") from error
        log.error("Turn %s cannot begin: %s", turn.turn_id, error)
        return NOT_SAVED
    except (ThreadQuarantined, RestoreFailed) as error:
        log.error("Turn %s cannot begin: %s", turn.turn_id, type(error).__name__)
        return Outcome(ROLLBACK_FAILED)
    try:
        standing = await memory.standing(turn) if landed else NOTHING
    except UNUSABLE as error:
        log.error("What stands of turn %s cannot be read: %s", turn.turn_id, error)
        return NOT_SAVED
    return _Begun(landed, bound, standing)


async def _reserve(run: Run, memory: Memory, seq: int) -> int:
    try:
        return await memory.reserve(run.turn, seq, run.log.mark)
    except UNUSABLE as error:
        log.warning("How far turn %s is told is not noted: %s", run.turn.turn_id, error)
        return seq + AHEAD


async def break_off(run: Run, memory: Memory) -> None:
    """Tells followers what of the turn stands, once nothing more of it is written."""
    try:
        standing = await memory.standing(run.turn)
    except UNUSABLE as error:  # then the next run tells them
        log.error("What stands of turn %s is not known: %s", run.turn.turn_id, error)
    else:
        _tell_what_stands(run, standing, run.translator.begin_anew(), "worker_stopped")


def _tell_what_stands(
    run: Run, standing: Standing, translator: Translator, reason: RewindReason, lost: int = 0
) -> None:
    entries, attempt = run.publisher.entries, run.turn.attempt
    for chunk in set_right(entries, standing, translator, reason, attempt, lost):
        run.publisher.put(chunk)
