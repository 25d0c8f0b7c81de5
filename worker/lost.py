"""What stands in a turn's log for chunks that Redis has lost, and how often its workers were."""

from collections.abc import Iterable, Sequence

from shared import chunks
from shared.chunks import Interruption, Place, Queued, Rewind, RewindReason
from shared.record import TurnRecord
from shared.stream import Entry
from worker.numbering import Numbering


def replace_lost(
    turn: TurnRecord, log: Sequence[Entry], numbering: Numbering | None, redis: str
) -> list[Entry]:
    """The entries that go behind a log which may have lost its end; none when it has not.

    A follower may have more than the log, so those numbers are not used for anything else, and what
    came under them is void. `redis`: the mark of the Redis that has the log.
    """
    last = turn.seq
    if numbering and numbering.redis != redis:
        last = max(last, numbering.bound)
    if last <= len(log):
        return []
    void = Interruption(len(log), find_reason(log, turn.attempt))
    rewind = chunks.encode(Rewind(turn_id=turn.turn_id, metadata=void))
    return [*stand_in(turn.turn_id, log, last), Entry(last + 1, "rewind", rewind)]


def stand_in(turn_id: str, log: Sequence[Entry], last: int) -> list[Entry]:
    """Entries for the numbers after a log, up to `last`; they say nothing that is not known."""
    body = chunks.encode(Queued(turn_id=turn_id, metadata=Place(position=0)))
    return [Entry(seq, "queued", body) for seq in range(len(log) + 1, last + 1)]


def find_reason(log: Iterable[Entry], attempt: int) -> RewindReason:
    """Why this attempt goes on with a turn: a worker died with it of which nobody was told, or it
    was stopped.
    """
    return "worker_lost" if count_lost(log) < attempt - 1 else "worker_stopped"


def count_lost(log: Iterable[Entry]) -> int:
    """Of how many lost workers the log tells."""
    told = (chunks.decode(entry.body) for entry in log if entry.type == "rewind")
    return sum(
        isinstance(chunk, Rewind) and chunk.metadata.reason == "worker_lost" for chunk in told
    )
