"""The terminal chunk: written in one place."""

from msgspec.structs import asdict

from shared.chunks import Done, Error, ErrorSummary, Terminal
from shared.record import Failure, TurnRecord
from worker.tally import Tally


def conclude(turn: TurnRecord, tally: Tally, failure: Failure | None, elapsed_s: float) -> Terminal:
    """A turn's last chunk. `elapsed_s`: since it was accepted."""
    summary = tally.sum_up(elapsed_s=elapsed_s, queued_s=turn.queued_s, run_id=turn.run_id)
    if failure is None:
        return Done(turn_id=turn.turn_id, metadata=summary)
    details = ErrorSummary(**asdict(summary), code=failure.code)
    return Error(turn_id=turn.turn_id, content=failure.message, metadata=details)
