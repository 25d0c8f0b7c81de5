"""What must hold of a history; each check answers what does not, a line for each."""

from collections.abc import Callable, Iterator

from shared.chunks import Done, Error
from tests.chaos.held import figures_differ, hold
from tests.chaos.history import History, Told

ENDS = {"done", "error", "cancelled"}


def one_end(history: History) -> Iterator[str]:
    """Every accepted turn has one terminal chunk, which is the last, and the record agrees."""
    for turn in history.turns:
        ends = [seq for seq, chunk in turn.log if chunk.completed]
        if ends != [len(turn.log)]:
            yield f"turn {turn.number} ends at {ends} of {len(turn.log)} chunks"
        elif turn.end not in ENDS or turn.end != hold(turn.log).end:
            yield f"turn {turn.number} is {turn.end} and says {hold(turn.log).end}"


def right_end(history: History) -> Iterator[str]:
    """A turn is cancelled only on demand, and fails only when two workers died of it."""
    for turn in history.turns:
        if turn.end == "cancelled" and not turn.cancel:
            yield f"turn {turn.number} was cancelled by nobody"
        if turn.cancel == "cancelled" and turn.end != "cancelled":
            yield f"turn {turn.number} was cancelled and is {turn.end}"
        yield from _failure(turn, history.kills)


def _failure(turn: Told, kills: int) -> Iterator[str]:
    _, last = turn.log[-1] if turn.log else (0, None)
    if not isinstance(last, Error):
        return
    attempts = turn.record["attempt"]
    if last.metadata.code != "worker_lost" or attempts < 3 or kills < 2:
        yield (
            f"turn {turn.number} ends {last.metadata.code} ({last.content})"
            f" at attempt {attempts}, after {kills} kills"
        )


def first_in_first_out(history: History) -> Iterator[str]:
    """No turn is asked of the model before one that was accepted before it was even sent."""
    by_text = {turn.text: turn for turn in history.turns}
    latest: Told | None = None
    for turn in [by_text[text] for text in history.asked if text in by_text]:
        if latest and turn.answered < latest.sent:
            yield f"turn {latest.number} was run before turn {turn.number}"
        if not latest or turn.sent > latest.sent:
            latest = turn


def nothing_lost_or_doubled(history: History) -> Iterator[str]:
    """The log has no gap, and who followed and came again got just that."""
    for turn in history.turns:
        numbers = [seq for seq, _ in turn.log]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"turn {turn.number} is numbered {numbers}"
        if turn.seen != turn.log:
            seen = [seq for seq, _ in turn.seen]
            yield f"turn {turn.number}: its follower got {seen}, its log is {numbers}"


def right_figures(history: History) -> Iterator[str]:
    """A good end adds up what a follower holds who honours each rewind."""
    for turn in history.turns:
        end = turn.log[-1][1] if turn.log else None
        wrong = figures_differ(hold(turn.log), end) if isinstance(end, Done) else ""
        if wrong:
            yield f"turn {turn.number}: {wrong}"


def one_at_a_time(history: History) -> Iterator[str]:
    """The model server never has two requests."""
    if history.most_at_once > 1:
        yield f"{history.most_at_once} requests were at the model server at once"


def nothing_left_over(history: History) -> Iterator[str]:
    """When all turns have ended, all that Redis has will go, and no thread is open."""
    yield from (f"{key} has no lifetime" for key in sorted(history.everlasting))
    yield from (f"{table} has {rows} rows" for table, rows in history.left_open.items() if rows)


CHECKS: list[Callable[[History], Iterator[str]]] = [
    one_end,
    right_end,
    first_in_first_out,
    nothing_lost_or_doubled,
    right_figures,
    one_at_a_time,
    nothing_left_over,
]


def check(history: History) -> list[str]:
    """All that is wrong."""
    return [*history.faults, *(line for each in CHECKS for line in each(history))]
