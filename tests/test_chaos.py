"""Whatever dies, nothing accepted is lost; and a history in which something is lost is told."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import randrange

import pytest

from shared.chunks import (
    Chunk,
    Done,
    Error,
    Place,
    Queued,
    Source,
    Text,
)
from shared.summary import ErrorSummary, Summary
from tests.chaos import checks
from tests.chaos.history import History, Told
from tests.chaos.run import run_chaos
from tests.chaos.strikes import DECK

TURNS = 18
"""Enough for a strike of each kind."""


@pytest.mark.timeout(300)
async def test_whatever_dies_nothing_is_lost() -> None:
    # The name is short: the path of a socket has a limit.
    with tempfile.TemporaryDirectory(prefix="tk") as name:
        result = await run_chaos(Path(name), TURNS, seed := randrange(10**6))
    assert not result.faults, f"seed {seed}: {result}\n" + "\n".join(result.faults)
    assert set(result.strikes) == set(DECK)
    assert result.ends["done"]


def text(content: str) -> Chunk:
    return Text(turn_id="t", content=content, metadata=Source("m"))


def done(chars: int = 5) -> Chunk:
    return Done(turn_id="t", metadata=Summary(elapsed_s=1, queued_s=0, chars=chars))


def failed(code: str) -> Chunk:
    metadata = ErrorSummary(elapsed_s=1, queued_s=0, code=code)  # pyright: ignore[reportArgumentType]
    return Error(turn_id="t", content="Why.", metadata=metadata)


def told(number: int, *chunks: Chunk) -> Told:
    """A turn with this log, which its follower has got, posted at the second of its number."""
    log = list(enumerate([Queued(turn_id="t", metadata=Place(0)), *chunks], 1))
    record = {"status": "done", "attempt": 1}
    turn = Told(number, f"Do {number}.", "thread", f"t{number}", number, number + 0.5)
    turn.seen, turn.log, turn.record = list(log), log, record
    return turn


def good() -> History:
    """Two turns, nothing wrong with them."""
    turns = [told(1, text("Hel"), text("lo"), done()), told(2, text("Hello"), done())]
    return History(turns, asked=["Do 1.", "Do 2."], most_at_once=1, left_open={"outbox": 0})


def test_nothing_is_wrong_with_a_good_history() -> None:
    assert checks.check(good()) == []


def lose_the_end(history: History) -> None:
    del history.turns[0].log[-1]
    history.turns[0].seen = list(history.turns[0].log)


def end_twice(history: History) -> None:
    history.turns[0].log.append((5, done()))
    history.turns[0].seen = list(history.turns[0].log)


def go_on_after_the_end(history: History) -> None:
    history.turns[0].log.append((5, text("!")))
    history.turns[0].seen = list(history.turns[0].log)


def say_otherwise(history: History) -> None:
    history.turns[0].record["status"] = "error"


def never_end(history: History) -> None:
    history.turns[0].record["status"] = "running"


def fail(code: str, attempt: int, kills: int) -> Callable[[History], None]:
    def broken(history: History) -> None:
        history.turns[0] = told(1, text("Hello"), failed(code))
        history.turns[0].record = {"status": "error", "attempt": attempt}
        history.kills = kills

    return broken


def cancel_unasked(history: History) -> None:
    history.turns[0].record["status"] = "cancelled"


def not_cancel(history: History) -> None:
    history.turns[0].cancel = "cancelled"


def overtake(history: History) -> None:
    history.asked.reverse()


def lose_a_chunk(history: History) -> None:
    del history.turns[0].log[1]
    history.turns[0].seen = list(history.turns[0].log)


def miss_a_chunk(history: History) -> None:
    del history.turns[0].seen[1]


def hear_twice(history: History) -> None:
    history.turns[0].seen.insert(1, history.turns[0].seen[1])


def hear_otherwise(history: History) -> None:
    history.turns[0].seen[1] = (2, text("Hal"))


def count_wrong(history: History) -> None:
    history.turns[0] = told(1, text("Hello"), done(chars=4))


def ask_two(history: History) -> None:
    history.most_at_once = 2


def stay(history: History) -> None:
    history.everlasting.add("turnkeeper:turn:t1")


def leave_open(history: History) -> None:
    history.left_open["open_turns"] = 1


def see_a_fault(history: History) -> None:
    history.faults.append("The API answered 404.")


@pytest.mark.parametrize(
    "break_it",
    [
        lose_the_end,
        end_twice,
        go_on_after_the_end,
        say_otherwise,
        never_end,
        fail("agent", 3, 2),
        fail("worker_lost", 2, 2),
        fail("worker_lost", 3, 1),
        cancel_unasked,
        not_cancel,
        overtake,
        lose_a_chunk,
        miss_a_chunk,
        hear_twice,
        hear_otherwise,
        count_wrong,
        ask_two,
        stay,
        leave_open,
        see_a_fault,
    ],
)
def test_what_is_wrong_with_a_history_is_told(break_it: Callable[[History], None]) -> None:
    history = good()
    break_it(history)
    assert checks.check(history)
