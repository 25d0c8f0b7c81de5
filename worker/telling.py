"""The last word on a turn to Redis: that it has ended, or that it waits again."""

import logging

from shared.claims import Claims
from shared.record import ENDED, TurnRecord
from shared.stream import Entry
from worker.ending import Ending
from worker.insist import insist
from worker.memory import Memory
from worker.publisher import Publisher, open_publisher
from worker.settlement import UNUSABLE

log = logging.getLogger(__name__)


async def tell(claims: Claims, memory: Memory, ending: Ending, publisher: Publisher) -> None:
    """Says to Redis that the turn has ended, until it knows; raises Fenced."""
    turn, chunk, failure = ending.turn, ending.chunk, ending.failure
    await publisher.conclude(lambda seq: claims.finish(turn, seq, chunk, failure))
    try:
        await memory.told(turn.turn_id)
    except UNUSABLE as error:  # it is told again at the next start, which Redis does not mind
        log.warning("Turn %s stays in the outbox: %s", turn.turn_id, error)


async def tell_later(claims: Claims, memory: Memory, ending: Ending) -> None:
    """Does so when whoever knew the turn's chunks is gone, and Redis may not know the turn.

    An end that Redis knows stands, whichever it is. Raises Fenced.
    """
    turn = ending.turn
    if await insist(lambda: claims.status(turn.turn_id)) in ENDED:
        await memory.told(turn.turn_id)
        return
    await insist(lambda: claims.revive(turn, "ending"))
    told = await insist(lambda: claims.read_log(turn.turn_id))
    missing = _find_missing(told, ending.unsent)
    async with open_publisher(claims, turn, told, _ignore, missing) as publisher:
        publisher.close()
    await tell(claims, memory, ending, publisher)


async def let_go(claims: Claims, memory: Memory, turn: TurnRecord, publisher: Publisher) -> bool:
    """Has the turn wait again; False when a person wants it undone. Raises Fenced."""
    told = await publisher.conclude(lambda seq: claims.requeue(turn, seq))
    if told.state != "queued":
        return False
    try:
        await memory.let_go(turn)
    except UNUSABLE as error:  # then it counts as a crash, should Redis forget the turn as well
        log.warning("That turn %s waits is not noted: %s", turn.turn_id, error)
    return True


def _find_missing(told: list[Entry], unsent: list[Entry]) -> list[Entry]:
    """Of a Redis that has lost even more, all of it goes behind what is there."""
    first = unsent[0].seq if unsent else 0
    return unsent[max(0, len(told) + 1 - first) :] if len(told) + 1 >= first else unsent


def _ignore() -> None:
    """The turn has ended: it is too late for a cancel."""
