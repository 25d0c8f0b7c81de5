"""What stands in a turn's log for chunks that Redis has lost."""

from collections.abc import Iterable, Sequence

import msgspec

from shared import chunks
from shared.chunks import Interruption, Place, Queued, Rewind, RewindReason
from shared.record import TurnRecord
from shared.stream import Entry
from worker.numbering import Numbering


def replace_lost(
    turn: TurnRecord, log: Sequence[Entry], numbering: Numbering | None, mark: str
) -> list[Entry]:
    """The entries that go behind a log which may have lost its end; none when it has not.

    A follower may have more than the log, so those numbers are not used for anything else, and what
    came under them is void. `mark`: of the Redis that has the log.
    """
    last = turn.seq
    if numbering and numbering.mark != mark:
        last = max(last, numbering.bound)
    if last <= len(log):
        return []
    waits = chunks.encode(Queued(turn_id=turn.turn_id, metadata=Place(position=0)))
    void = Interruption(len(log), find_reason(log, turn.attempt))
    rewind = chunks.encode(Rewind(turn_id=turn.turn_id, metadata=void))
    stand_ins = [Entry(seq, "queued", waits) for seq in range(len(log) + 1, last + 1)]
    return [*stand_ins, Entry(last + 1, "rewind", rewind)]


def find_reason(log: Iterable[Entry], attempt: int) -> RewindReason:
    """Why this attempt goes on with a turn: a worker died with it of which nobody was told, or it
    was stopped.
    """
    return "worker_lost" if count_lost(log) < attempt - 1 else "worker_stopped"


def count_lost(log: Iterable[Entry]) -> int:
    """Of how many lost workers the log tells."""
    return sum(_tells_of_loss(entry.body) for entry in log if entry.type == "rewind")


def _tells_of_loss(body: bytes) -> bool:
    try:
        chunk = chunks.decode(body)
    except msgspec.MsgspecError:  # of another version
        return False
    return isinstance(chunk, Rewind) and chunk.metadata.reason == "worker_lost"
