"""What followers hold of a turn that was broken off is set right by what the database holds."""

from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from shared.chunks import (
    Chunk,
    Interruption,
    Place,
    Queued,
    Rewind,
    RewindReason,
    Source,
    Text,
    Usage,
)
from shared.stream import Entry
from shared.usage import CallUsage
from tests.parts_made import (
    CAT,
    COUNTS,
    HELPER,
    LS,
    calling,
    heard,
    outcome,
    piece,
    result,
    say,
    stepped,
    use,
)
from tests.turns_made import entry
from worker.rewind import hold, set_right
from worker.standing import NOTHING, Said, Standing
from worker.translate import Translator

HELLO = AIMessage("Hello", id="m")
COUNTED = AIMessage("Hello", id="m", usage_metadata=COUNTS)
QUEUED = Queued(turn_id="t", metadata=Place(position=0))


def rewind(to_seq: int, reason: RewindReason = "worker_stopped") -> Rewind:
    return Rewind(turn_id="t", metadata=Interruption(to_seq, reason))


def another(content: str, message_id: str) -> Text:
    """Of another message than `say` is of."""
    return Text(turn_id="t", content=content, metadata=Source(message_id))


def usage(call_index: int, message_id: str = "m") -> Usage:
    figures = CallUsage(
        call_index=call_index, message_id=message_id, input_tokens=10, output_tokens=2
    )
    return Usage(turn_id="t", metadata=figures)


def log(*told: Chunk) -> list[Entry]:
    """What Redis holds, from the first chunk that every turn has."""
    return [entry(seq, chunk) for seq, chunk in enumerate((QUEUED, *told), 1)]


def wrote(*messages: BaseMessage) -> Standing:
    """What the agent itself has written."""
    return Standing([Said((), message) for message in messages], {})


def right(
    entries: list[Entry], standing: Standing, *, attempt: int = 1, translator: Any = None
) -> list[Chunk]:
    translator = translator or Translator("t", 2000)
    return set_right(entries, standing, translator, "worker_stopped", attempt)


class Case(NamedTuple):
    """`told`: after the first chunk, which is number 1."""

    told: list[Chunk]
    standing: Standing
    expected: list[Chunk]


TWO_CALLS: list[Chunk] = [use(LS), use(CAT), outcome("a"), outcome("b", CAT)]
CALLED = calling(LS, CAT)

TABLE: dict[str, Case] = {
    "nothing was told": Case([], NOTHING, []),
    "what the person has written is not told": Case([], wrote(HumanMessage("hi", id="h")), []),
    "a part of a message is void": Case([say("Hel")], NOTHING, [rewind(1)]),
    "a whole message stands": Case([say("Hel"), say("lo")], wrote(HELLO), [rewind(3)]),
    "a message of which the log has a part is told again": Case(
        [say("Hel")], wrote(HELLO), [rewind(1), say("Hello")]
    ),
    "a message that was never told is told": Case([], wrote(HELLO), [rewind(1), say("Hello")]),
    "a call stands, its result does not": Case(
        [use(LS), outcome("a")], wrote(calling(LS)), [rewind(2)]
    ),
    "a result that was never told is told": Case(
        [use(LS)], wrote(calling(LS), result("a")), [rewind(2), outcome("a")]
    ),
    "of two results the first stands": Case(TWO_CALLS, wrote(CALLED, result("a")), [rewind(4)]),
    "of two results the second stands": Case(
        TWO_CALLS,
        wrote(CALLED, result("b", "c2", name="cat")),
        [rewind(3), outcome("b", CAT)],
    ),
    "figures stand": Case([say("Hello"), usage(1)], wrote(COUNTED), [rewind(3)]),
    "figures that were never told are told": Case(
        [say("Hello")], wrote(COUNTED), [rewind(2), usage(1)]
    ),
    "figures are told again with the number of their call": Case(
        [say("Hello"), usage(1), another("An", "n")],
        wrote(COUNTED, AIMessage("And", id="n", usage_metadata=COUNTS)),
        [rewind(3), another("And", "n"), usage(2, "n")],
    ),
    "what a sub-agent said": Case(
        [],
        Standing([Said(HELPER, HELLO), Said(HELPER, calling(LS))], {HELPER: "helper"}),
        [rewind(1), say("Hello", ["helper"]), use(LS, ["helper"])],
    ),
    "what a sub-agent was saying": Case([say("Hel", agent=["helper"])], NOTHING, [rewind(1)]),
    "a second time, of what was said since the first": Case(
        [say("Hel"), rewind(1), QUEUED, say("Hello"), use(LS)], wrote(HELLO), [rewind(5)]
    ),
    "a second time, of what the first has told again": Case(
        [say("Hel"), rewind(1), say("Hello"), QUEUED, use(LS)], wrote(HELLO), [rewind(5)]
    ),
    "a third time, of what was said since the second": Case(
        [say("Hel"), rewind(1), use(LS)], NOTHING, [rewind(3)]
    ),
    "what was void stays so": Case(
        [say("Hello"), rewind(1), QUEUED], wrote(HELLO), [rewind(4), say("Hello")]
    ),
    "it knows that the turn waits": Case([say("Hello"), rewind(2), QUEUED], wrote(HELLO), []),
    "it knows that the turn waits, in vain": Case([rewind(1), QUEUED], NOTHING, []),
}


@pytest.mark.parametrize("case", TABLE.values(), ids=TABLE.keys())
def test_what_does_not_stand_is_void_and_the_rest_is_told(case: Case) -> None:
    assert right(log(*case.told), case.standing) == case.expected


@pytest.mark.parametrize("case", TABLE.values(), ids=TABLE.keys())
def test_then_followers_hold_what_stands(case: Case) -> None:
    corrected = [*case.told, *right(log(*case.told), case.standing)]
    # Once they have been told that the turn waits, there is nothing more to say.
    assert right(log(*corrected, QUEUED), case.standing) == []


@pytest.mark.parametrize(
    ("told", "attempt", "to_seq"),
    [
        ([], 2, 1),
        ([say("Hello"), rewind(2), QUEUED], 2, 4),
        ([rewind(1, "worker_lost"), QUEUED], 3, 3),
        ([rewind(1, "worker_lost"), rewind(2, "worker_lost"), QUEUED], 3, None),
    ],
)
def test_each_worker_that_died_is_told_of(
    told: list[Chunk], attempt: int, to_seq: int | None
) -> None:
    standing = wrote(HELLO) if say("Hello") in told else NOTHING
    expected = [] if to_seq is None else [rewind(to_seq)]
    assert right(log(*told), standing, attempt=attempt) == expected


def test_a_follower_drops_what_is_void() -> None:
    told = log(
        say("a"), another("b", "n"), rewind(2), another("c", "o"), rewind(5), rewind(2), use(LS)
    )
    assert hold(told) == [(1, QUEUED), (2, say("a")), (8, use(LS))]


def test_the_turn_goes_on_from_there() -> None:
    translator = Translator("t", 2000)
    told = log(say("Hello"), usage(1), use(LS), another("An", "n"))
    standing = wrote(COUNTED, calling(LS), AIMessage("And", id="n", usage_metadata=COUNTS))
    right(told, standing, translator=translator)
    figures = {"usage_metadata": COUNTS}
    new = piece("more", **figures).model_copy(update={"id": "o"})
    parts = [stepped(calling(LS)), stepped(result("a")), stepped(result("a")), heard(new)]
    went_on = [chunk for part in parts for chunk in translator.translate(part)]
    assert went_on == [outcome("a"), another("more", "o"), usage(3, "o")]
    summary = translator.tally.sum_up(elapsed_s=0, queued_s=0, run_id=None)
    assert (summary.chars, summary.tool_calls, summary.model_calls) == (12, 1, 3)


def test_what_is_void_is_not_counted() -> None:
    translator = Translator("t", 2000)
    right(log(say("Hello"), usage(1), use(LS)), NOTHING, translator=translator)
    summary = translator.tally.sum_up(elapsed_s=0, queued_s=0, run_id=None)
    assert (summary.chars, summary.tool_calls, summary.model_calls) == (0, 0, 0)
