"""How a turn ended, and its terminal chunk: written in one place."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import asdict

from shared.chunks import Cancelled, Done, Error, Terminal
from shared.record import Failure, TurnRecord
from shared.stream import Entry
from shared.summary import CancelSummary, ErrorSummary, Summary
from worker.ending import Ending
from worker.tally import Tally


class Outcome(Struct, frozen=True):
    """What became of a turn: failed, undone by a person, broken off to be gone on with, or none."""

    failure: Failure | None = None
    cancelled: bool = False
    broken_off: bool = False


DONE = Outcome()
CANCELLED = Outcome(cancelled=True)
BROKEN_OFF = Outcome(broken_off=True)


def nothing_told() -> list[Entry]:
    """Of a turn that has no chunks."""
    return []


class Account(Struct, frozen=True):
    """What is known of a turn when it ends. `elapsed_s`: seconds since it was accepted.

    `log`: its chunks.
    """

    turn: TurnRecord
    tally: Tally
    elapsed_s: Callable[[], float]
    log: Callable[[], list[Entry]] = nothing_told

    def conclude(self, outcome: Outcome, rolled_back: int | None = None) -> Ending:
        """The turn's end; `rolled_back`: messages that the restore takes out of the thread."""
        chunk = self._chunk(outcome, rolled_back)
        return Ending(
            turn=self.turn,
            chunk=chunk,
            failure=outcome.failure,
            log=self.log(),
            said=self.tally.said,
        )

    def _chunk(self, outcome: Outcome, rolled_back: int | None) -> Terminal:
        summary, turn_id = self._sum_up(), self.turn.turn_id
        if outcome.failure:
            metadata = ErrorSummary(
                **asdict(summary), rolled_back_messages=rolled_back, code=outcome.failure.code
            )
            return Error(turn_id=turn_id, content=outcome.failure.message, metadata=metadata)
        if outcome.cancelled:
            metadata = CancelSummary(**asdict(summary), rolled_back_messages=rolled_back)
            return Cancelled(turn_id=turn_id, metadata=metadata)
        return Done(turn_id=turn_id, metadata=summary)

    def _sum_up(self) -> Summary:
        return self.tally.sum_up(
            elapsed_s=self.elapsed_s(), queued_s=self.turn.queued_s, run_id=self.turn.run_id
        )
