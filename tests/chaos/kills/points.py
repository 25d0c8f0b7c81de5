"""The moments at which a worker is killed, and how much of its turn must not be done again."""

from asyncio import Event
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.crew import Crew
from tests.chaos.kills import hooks
from tests.chaos.kills.hooks import Hook
from tests.fake_llama import Reply
from tests.traceless.dialogue import Replies, calls, delegate, note, todo, wait
from tests.traceless.rows import count_within
from tests.traceless.turn import Turn
from tests.traceless.ways import Reached, Says, both, calling, in_prefill, in_words, words

DO = "Do it."
HELP_SLOWLY = "Look it up slowly."
HELP_AT_LENGTH = "Look it up at length."


@dataclass(frozen=True)
class Point:
    """`adds`: how many messages of the turn are in the database by then, and `within`: of its
    sub-agents. `answered`: how many model calls are answered for good; `again`: what tools were
    given that run again.

    A worker with a `hook` kills itself, once something is `reached` and done or, without that, by
    itself. `attempt`: how often the turn was begun in the end.
    """

    name: str
    says: Says
    adds: int = 0
    within: int = 0
    answered: int = 0
    again: Sequence[str] = ()
    reached: Reached | None = None
    hook: Hook | None = None
    attempt: int = 2

    def is_reached(self, turn: Turn) -> bool:
        """The turn is held at this point, and what it has done is written."""
        if not (self.reached and self.reached(turn)):
            return False
        before, now = count_within(turn.rows_before), count_within(turn.rows)
        return (turn.n_messages, now - before) == (self.adds, self.within)

    def dialogue(self, hold: Event) -> dict[str, Replies]:
        """What the model says beside what every test knows."""
        return {
            DO: self.says(hold),
            HELP_SLOWLY: [calls(note("found")), calls(wait("inside")), Reply("Found.")],
            HELP_AT_LENGTH: [calls(note("found")), words(hold)],
        }


def tools(*begun: str) -> Reached:
    """These tools have begun in the turn, and nothing else has."""

    def reached(turn: Turn) -> bool:
        crew = turn.view.tools
        assert isinstance(crew, Crew)
        return sorted(crew.begun) == sorted(begun)

    return reached


def simply(_: Event) -> Replies:
    """A tool and words, nothing of it held."""
    return [calls(note("one")), Reply("Done and told.")]


def slowly(hold: Event) -> Replies:
    """A tool, and then the prompt is read for long."""
    return [calls(note("one")), Reply("Done and told.", gate=hold)]


def at_length(hold: Event) -> Replies:
    """Words, a tool, and words of which only the first are heard."""
    return [calls(note("one")), words(hold)]


THREE_AT_ONCE = calling(note("one"), wait("two"), wait("three"))
INSIDE = calling(delegate(HELP_SLOWLY), todo("Go on."))
INSIDE_AT_LENGTH = calling(delegate(HELP_AT_LENGTH))

MID_STREAM = Point("mid-stream", at_length, 3, 0, 1, reached=in_words(2))
PARALLEL = Point(
    "one tool of three has finished",
    THREE_AT_ONCE,
    3,
    0,
    1,
    ("two", "three"),
    tools("one", "two", "three"),
)

POINTS = [
    Point("before the claim", simply, again=["one"], hook=hooks.before_the_claim, attempt=1),
    Point("after the fence", simply, again=["one"], hook=hooks.after_the_fence),
    Point(
        "before the input checkpoint",
        simply,
        again=["one"],
        hook=hooks.before_the_input_checkpoint,
    ),
    Point("in the first prefill", lambda hold: slowly(hold)[1:], 1, reached=in_prefill(1)),
    Point("in prefill", slowly, 3, 0, 1, reached=in_prefill(2)),
    Point("in the first words", lambda hold: at_length(hold)[1:], 1, reached=in_words(1)),
    MID_STREAM,
    PARALLEL,
    Point(
        "in a sub-agent's tool",
        INSIDE,
        3,
        4,
        3,
        ["inside"],
        tools("found", "inside"),
    ),
    Point(
        "in a sub-agent's words",
        INSIDE_AT_LENGTH,
        2,
        3,
        2,
        reached=both(in_words(3), tools("found")),
    ),
    Point(
        "after a commit, nothing told",
        simply,
        4,
        0,
        2,
        hook=hooks.after_a_commit_unheard,
        attempt=1,
    ),
    Point("before the end is told", simply, 4, 0, 2, hook=hooks.before_the_end_is_told, attempt=1),
]
