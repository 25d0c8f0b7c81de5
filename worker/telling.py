"""The last word on a turn to Redis: that it has ended, or that it waits again."""

import logging

from shared.claims import Claims
from shared.record import ENDED, TurnRecord
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
    memory.told(turn.turn_id)


async def tell_later(claims: Claims, memory: Memory, ending: Ending) -> None:
    """Does so when whoever knew the turn's chunks is gone, and Redis may not know the turn.

    An end that Redis knows stands, whichever it is. Raises Fenced.
    """
    turn = ending.turn
    if await insist(lambda: claims.status(turn.turn_id)) in ENDED:
        memory.told(turn.turn_id)
        return
    await insist(lambda: claims.revive(turn, "ending"))
    told = await insist(lambda: claims.read_log(turn.turn_id))
    missing = ending.log[len(told) :]
    async with open_publisher(claims, turn, told, _ignore, missing) as publisher:
        publisher.close()
    await tell(claims, memory, ending, publisher)


async def let_go(claims: Claims, memory: Memory, turn: TurnRecord, publisher: Publisher) -> bool:
    """Has the turn wait again; False when a person wants it undone. Raises Fenced."""
    try:  # first: Redis may be away, and the worker has little time
        await memory.let_go(turn, len(publisher.entries) + 1)
    except UNUSABLE as error:  # then it counts as a crash, unless Redis hears of it
        log.warning("That turn %s waits is not noted: %s", turn.turn_id, error)
    told = await publisher.conclude(lambda seq: claims.requeue(turn, seq))
    return told.state == "queued"


def _ignore() -> None:
    """The turn has ended: it is too late for a cancel."""
