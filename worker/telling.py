"""What a run finds told of its turn, and its last word: that it has ended, or waits again."""

import logging

from shared.claims import Claims
from shared.record import ENDED, TurnRecord
from worker.ending import Ending
from worker.insist import insist
from worker.lost import Log, count_missing, stand_in
from worker.memory import Memory
from worker.publisher import Publisher, open_publisher
from worker.settlement import UNUSABLE

logger = logging.getLogger(__name__)


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
        publisher.state = "ending"
        publisher.close()
    await tell(claims, memory, ending, publisher)


async def read_log(claims: Claims, memory: Memory, turn: TurnRecord, mark: str) -> Log:
    """What was told of the turn; `mark`: of the Redis that is there now.

    May raise sqlite3.Error and TimeoutError.
    """
    numbering = await memory.numbering_of(turn)
    told = await insist(lambda: claims.read_log(turn.turn_id))
    if not told:  # it has just been emptied
        await insist(lambda: claims.revive(turn, "running"))
        told = await insist(lambda: claims.read_log(turn.turn_id))
    return Log(told, mark, count_missing(turn, told, numbering, mark))


async def make_good(claims: Claims, memory: Memory, turn: TurnRecord, mark: str) -> None:
    """Tells what stands in for chunks that are lost, of a turn that is to wait again.

    May raise Fenced, sqlite3.Error and TimeoutError.
    """
    log = await read_log(claims, memory, turn, mark)
    if log.lost:
        last = len(log.entries) + log.lost + 1
        await memory.set_bound(turn, last + 1)  # with that it waits
        async with open_publisher(claims, turn, log.entries, _ignore) as publisher:
            for chunk in stand_in(turn, log):
                publisher.put(chunk)


async def note_waiting(memory: Memory, turn: TurnRecord, publisher: Publisher) -> None:
    """Has the database know first that the turn is let go: Redis may be away, and time is short."""
    try:
        await memory.let_go(turn, len(publisher.entries) + 1)
    except UNUSABLE as error:  # then it counts as a crash, unless Redis hears of it
        logger.warning("That turn %s waits is not noted: %s", turn.turn_id, error)


async def let_go(claims: Claims, turn: TurnRecord, publisher: Publisher) -> bool:
    """Has the turn wait again; False when a person wants it undone. Raises Fenced."""
    told = await publisher.conclude(lambda seq: claims.requeue(turn, seq))
    return told.state == "queued"


def _ignore() -> None:
    """A cancel is too late, or is heard when the turn runs."""
