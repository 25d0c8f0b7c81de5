"""What the model says in a turn, and how far the turn has come."""

from asyncio import Event
from collections.abc import Callable, Sequence

from tests.fake_llama import Reply
from tests.traceless.dialogue import Replies, Tool, calls, note
from tests.traceless.rows import has_compacted, is_sealed, updates_since_snapshot
from tests.traceless.turn import Turn

Says = Callable[[Event], Replies]
"""The model's replies, some of them held until the event is set."""

Reached = Callable[[Turn], object]


def words(hold: Event) -> Reply:
    """Words of which only the first are heard."""
    return Reply("Well, let me see what there is to say.", hang_after=3, release=hold)


def calling(*tools: Tool) -> Says:
    """The model calls these tools."""
    return lambda _: [calls(*tools), Reply("Done.")]


def holding(*before: Tool) -> Says:
    """The model is held in prefill, after it has called these tools, if any."""
    return lambda hold: [*_first(before), Reply("Never heard.", gate=hold)]


def halting(*before: Tool) -> Says:
    """The model is held in the middle of its words, after it has called these tools, if any."""
    return lambda hold: [*_first(before), words(hold)]


def long_work(rounds: int, *last: Tool) -> Says:
    """The model calls a tool many times, and then these, or is held in prefill."""
    return lambda hold: [
        *(calls(note()) for _ in range(rounds)),
        calls(*last) if last else Reply("Never heard.", gate=hold),
    ]


def _first(tools: Sequence[Tool]) -> list[Reply]:
    return [calls(*tools)] if tools else []


def in_prefill(nth: int) -> Reached:
    """The model has been asked for the nth time, and says nothing yet."""
    return lambda turn: len(turn.calls) == nth and turn.calls[-1].state == "prefill"


def in_words(nth: int) -> Reached:
    """The model has been asked for the nth time, and its first words have been told."""
    return lambda turn: len(turn.calls) == nth and turn.has_told("text")


def in_tools(*held: str) -> Reached:
    """These tools are running."""
    return lambda turn: sorted(turn.view.tools.held) == sorted(held)


def at_update(since_snapshot: int) -> Reached:
    """The messages were added to so many times since they were all written out."""
    return lambda turn: updates_since_snapshot(turn.rows) == since_snapshot


def sealed(reached: Reached) -> Reached:
    """The thread was one checkpoint before the turn."""
    return lambda turn: is_sealed(turn.rows_before) and reached(turn)


def compacted(reached: Reached) -> Reached:
    """The conversation was summarised in the turn."""
    return lambda turn: has_compacted(turn.rows) and reached(turn)


def both(one: Reached, other: Reached) -> Reached:
    return lambda turn: one(turn) and other(turn)
