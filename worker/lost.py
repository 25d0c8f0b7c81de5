"""What stands in a turn's log for chunks that Redis may have lost."""

from collections.abc import Sequence
from typing import NamedTuple

from shared.chunks import Interruption, Rewind
from shared.record import TurnRecord
from shared.stream import Entry
from worker.numbering import Numbering
from worker.rewind import find_reason, hold


class Log(NamedTuple):
    """A turn's chunks as Redis has them, and the mark of that Redis.

    `lost`: how many more may have been told. A follower may have them, so their numbers are not
    used for anything else.
    """

    entries: list[Entry]
    mark: str
    lost: int


def count_missing(
    turn: TurnRecord, log: Sequence[Entry], numbering: Numbering | None, mark: str
) -> int:
    """How many chunks behind its log may have been told. `mark`: of the Redis that has the log."""
    last = turn.seq
    if numbering and numbering.mark != mark:
        last = max(last, numbering.bound)
    return max(0, last - len(log))


def stand_in(turn: TurnRecord, log: Log) -> list[Rewind]:
    """For each chunk that may be lost, and once more for whoever has read them all: that all since
    the last that is held is void.
    """
    if not log.lost:
        return []
    held = hold(log.entries)
    to_seq = held[-1][0] if held else 0
    metadata = Interruption(to_seq, find_reason(log.entries, turn.attempt))
    return [Rewind(turn_id=turn.turn_id, metadata=metadata)] * (log.lost + 1)
