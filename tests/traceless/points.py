"""The moments at which a turn is cancelled, and how each is reached."""

from asyncio import Event
from collections.abc import Sequence
from dataclasses import dataclass

from tests.fake_llama import Reply
from tests.traceless.dialogue import HISTORY, Replies, calls, delegate, edit, note, todo, wait
from tests.traceless.turn import Turn
from tests.traceless.ways import (
    Reached,
    Says,
    at_update,
    both,
    calling,
    compacted,
    halting,
    holding,
    in_prefill,
    in_tools,
    in_words,
    long_work,
    sealed,
    words,
)
from tests.traceless.workshop import COMPACT_TO, PAUSE

DO = "Do it."
"""What begins the turn that is cancelled."""

HELP_SLOWLY = "Look it up slowly."
HELP_AT_LENGTH = "Look it up at length."
WORK_LONG = "Work long."

LONG = (*HISTORY, WORK_LONG)
"""So long a history is sealed: one checkpoint is left of it."""

ROUNDS = 20
"""With HISTORY and the question so many calls and results are 49 updates of the messages."""

NOTES = COMPACT_TO - 2
"""With the question and their call they are what is not summarised."""

THREE_AT_ONCE = calling(todo("Go on."), edit("one", "two"), wait("here"))
TWO_HELPERS = calling(delegate(HELP_SLOWLY), delegate(HELP_AT_LENGTH))
INSIDE = calling(delegate(HELP_SLOWLY))


@dataclass(frozen=True)
class Point:
    """`adds`: how many messages of the turn are in the database by then."""

    name: str
    says: Says
    reached: Reached
    adds: int
    history: Sequence[str] = HISTORY

    def is_reached(self, turn: Turn) -> bool:
        """The turn is held at this point, and what it has done is written."""
        return bool(self.reached(turn)) and turn.n_messages == self.adds

    def dialogue(self, hold: Event) -> dict[str, Replies]:
        """All that is said beside what every test knows."""
        return {
            DO: self.says(hold),
            HELP_SLOWLY: [calls(note(), wait("inside")), Reply("Found.")],
            HELP_AT_LENGTH: [calls(note()), words(hold)],
            WORK_LONG: [*(calls(note()) for _ in range(12)), Reply("Worked.")],
        }


def many_notes(_: Event) -> Replies:
    """So many tools answer that all that was said before the turn is summarised."""
    return [calls(*[note()] * NOTES), calls(wait("here")), Reply("Done.")]


POINTS = [
    Point("before the model's first word", holding(), in_prefill(1), 1),
    Point("in its first words", halting(), in_words(1), 1),
    Point("in its words after a tool", halting(note()), in_words(2), 3),
    Point(
        "one tool of three has finished",
        calling(note(), wait("here"), wait("there")),
        in_tools("here", "there"),
        3,
    ),
    Point("two tools of three have finished", THREE_AT_ONCE, in_tools("here"), 4),
    Point("between two steps", calling(note(PAUSE)), in_tools(PAUSE), 3),
    Point("a file was edited", holding(edit("one", "two")), in_prefill(2), 3),
    Point("in a sub-agent's tool", INSIDE, in_tools("inside"), 2),
    Point("in a sub-agent's words", calling(delegate(HELP_AT_LENGTH)), in_words(3), 2),
    Point("in two sub-agents", TWO_HELPERS, both(in_tools("inside"), in_words(4)), 2),
    Point("new thread, before the model's first word", holding(), in_prefill(1), 1, ()),
    Point("new thread, in a tool", THREE_AT_ONCE, in_tools("here"), 4, ()),
    Point("new thread, in a sub-agent", INSIDE, in_tools("inside"), 2, ()),
    Point("before a snapshot", long_work(ROUNDS), at_update(49), 41),
    Point("at a snapshot", long_work(ROUNDS, wait("here")), at_update(0), 42),
    Point("after a snapshot", long_work(ROUNDS + 1), at_update(1), 43),
    Point(
        "sealed thread, before the model's first word", holding(), sealed(in_prefill(1)), 1, LONG
    ),
    Point("sealed thread, in a tool", THREE_AT_ONCE, sealed(in_tools("here")), 4, LONG),
    Point("after a summary", many_notes, compacted(in_tools("here")), NOTES + 3),
]

WITH_DECISIONS = [
    "resumed after a decision, in the tool",
    "resumed after a decision, after the tool",
    "a new message instead of a decision",
    "waiting for a decision",
]
"""These come with the questions that agents may ask."""
