"""What is written to a thread sorts above its head, even after the clock has stepped back."""

# LangGraph's own annotations are unknown to a strict reader.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from collections.abc import AsyncGenerator, Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, TypedDict, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph

from worker.checkpoint_ids import continue_above
from worker.graph import Graph, Saver

NOW_S = 1_800_000_000
HOUR_S = 3600
LAST_S = 2**63 // 10**9  # what a clock can say at most
TIMESTAMP = slice(18)  # of an id; what follows is random


class Process:
    """LangGraph's ids as a process makes them that has just begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.begin(at_s=NOW_S)

    def begin(self, *, at_s: int) -> None:
        """A new process, whose clock stands at these seconds since 1970."""
        clock = SimpleNamespace(time_ns=lambda: at_s * 10**9)
        self._patch.setattr(ids, "time", clock)
        # Which is also what gives the tests after this one their own timestamp back.
        self._patch.setattr(ids, "_last_v6_timestamp", None)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    """The process that makes the ids; it is this test's own."""
    return Process(monkeypatch)


def make_id() -> str:
    return str(ids.uuid6())


@pytest.mark.parametrize("ahead_s", [NOW_S + 1, NOW_S + HOUR_S, LAST_S])
def test_ids_continue_above_one_from_a_clock_that_was_ahead(process: Process, ahead_s: int) -> None:
    process.begin(at_s=ahead_s)
    head = make_id()
    process.begin(at_s=NOW_S)
    assert make_id() < head
    continue_above(head)
    made = [make_id() for _ in range(100)]
    assert [head, *made] == sorted({head, *made})


def test_the_timestamp_alone_decides_never_the_bits_behind_it(process: Process) -> None:
    head = str(ids.uuid6(node=2**48 - 1, clock_seq=2**14 - 1))
    process.begin(at_s=NOW_S - HOUR_S)
    continue_above(head)
    assert str(ids.uuid6(node=0, clock_seq=0)) > head


def test_a_thread_that_is_behind_moves_nothing_back(process: Process) -> None:
    old = make_id()
    process.begin(at_s=NOW_S + HOUR_S)
    ahead = make_id()
    process.begin(at_s=NOW_S)
    continue_above(ahead)
    continue_above(old)
    assert make_id() > ahead


def test_a_clock_that_is_right_is_followed(process: Process) -> None:
    head = make_id()
    process.begin(at_s=NOW_S + HOUR_S)
    expected = make_id()[TIMESTAMP]
    process.begin(at_s=NOW_S + HOUR_S)
    continue_above(head)
    assert make_id()[TIMESTAMP] == expected


# The UUIDs among them are such as would be ahead of the clock if they were read as LangGraph's.
NOT_MADE = {
    "no checkpoint": None,
    "empty": "",
    "no UUID": "checkpoint-1",
    "version 1": "00000000-0000-12d0-8a4b-1d6b3b8c6d2f",
    "version 4": "00000000-0000-42d0-8a4b-1d6b3b8c6d2f",
    "another variant": "00000000-0000-62d0-1a4b-1d6b3b8c6d2f",
    "later than any clock": "ffffffff-ffff-6fff-bfff-ffffffffffff",
}


@pytest.mark.parametrize("given", NOT_MADE.values(), ids=NOT_MADE.keys())
def test_what_langgraph_cannot_have_made_changes_nothing(
    process: Process, given: str | None
) -> None:
    expected = make_id()[TIMESTAMP]
    process.begin(at_s=NOW_S)
    continue_above(given)
    assert make_id()[TIMESTAMP] == expected


def append(said: list[str], more: Sequence[list[str]]) -> list[str]:
    return [*said, *chain.from_iterable(more)]


class State(TypedDict):
    said: Annotated[list[str], DeltaChannel(append)]


def repeat(state: State) -> State:
    return {"said": [state["said"][-1].upper()]}


class Head(NamedTuple):
    checkpoint_id: str
    said: list[str]


def build_parrot(saver: Saver) -> Graph:
    """Says again what was said last."""
    graph = StateGraph(State)
    graph.add_node("repeat", repeat)
    graph.add_edge(START, "repeat")
    return graph.compile(checkpointer=saver)


@pytest.fixture
async def parrot(tmp_path: Path) -> AsyncGenerator[Graph]:
    path = tmp_path / "checkpoints.sqlite"
    # LangGraph's own saver: ours would refuse what sorts below the head.
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        await saver.setup()
        yield build_parrot(saver)


async def ask(parrot: Graph, text: str) -> Head:
    """One turn; answers what the thread knows after it."""
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    await parrot.ainvoke({"said": [text]}, config)
    state = await parrot.aget_state(config)
    configurable = cast(dict[str, Any], state.config.get("configurable"))
    return Head(configurable["checkpoint_id"], state.values["said"])


async def test_a_turn_after_the_clock_stepped_back_is_the_thread_s_latest(
    process: Process, parrot: Graph
) -> None:
    process.begin(at_s=NOW_S + HOUR_S)
    first = await ask(parrot, "ship")
    assert first.said == ["ship", "SHIP"]

    process.begin(at_s=NOW_S)
    assert await ask(parrot, "rock") == first, "a turn below the head is not forgotten any more"

    process.begin(at_s=NOW_S)
    continue_above(first.checkpoint_id)
    last = await ask(parrot, "reef")
    assert last.checkpoint_id > first.checkpoint_id
    assert last.said == ["ship", "SHIP", "reef", "REEF"]
