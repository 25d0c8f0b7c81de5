"""A sealed thread gives an agent back what it gave, whatever the types of its state."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel  # pyright: ignore[reportMissingTypeStubs]
from langgraph.graph import StateGraph  # pyright: ignore[reportMissingTypeStubs]
from pydantic import BaseModel

from tests.memory import place, working_for
from tests.turns_made import claimed_turn, done
from worker import seal as seal_module
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.memory import Memory
from worker.state import COUNTERS

NEVER = 10**9
CONFIG: RunnableConfig = {"configurable": {"thread_id": "thread"}}


class Note(BaseModel):
    """A type of an agent's own."""

    text: str


@dataclass
class Mark:
    """Another one."""

    line: int


def _extend(marks: list[Mark], added: Sequence[list[Mark]]) -> list[Mark]:
    return [*marks, *(mark for several in added for mark in several)]


class Typed(TypedDict):
    """State with types of its own, one of them in a channel that is kept as deltas."""

    note: Note
    marks: Annotated[list[Mark], DeltaChannel(_extend)]


def graph_with_types(saver: TurnSaver, seen: list[Any]) -> Any:
    """A graph that remembers what it was given back."""

    def look(state: Typed) -> dict[str, Any]:
        seen.append((state.get("note"), state.get("marks")))
        return {"note": Note(text=f"{len(seen)}"), "marks": [Mark(len(seen))]}

    graph: Any = StateGraph(Typed)
    graph.add_node("look", look)
    graph.set_entry_point("look")
    return graph.compile(checkpointer=saver)


async def test_types_of_an_agent_s_own_come_back_as_they_were(
    saver: TurnSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    graph = graph_with_types(saver, seen)
    memory = Memory(saver, {"chat": graph})
    for number, from_rows in enumerate((NEVER, 1, NEVER, 1), 1):
        monkeypatch.setattr(seal_module, "FROM_ROWS", from_rows)
        await memory.begin(turn := claimed_turn(turn_id=str(number)))
        with working_for(saver, turn.turn_id):
            await graph.ainvoke({"marks": []}, CONFIG)
        await memory.drain()
        await memory.commit(Ending(turn=turn, chunk=done(turn)))
        await memory.shorten(turn)
    assert [note for note, _ in seen] == [None, Note(text="1"), Note(text="2"), Note(text="3")]
    assert seen[-1][1] == [Mark(1), Mark(2), Mark(3)]


async def test_a_sealed_head_counts_no_deltas(
    saver: TurnSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal_module, "FROM_ROWS", 1)
    graph = graph_with_types(saver, [])
    memory = Memory(saver, {"chat": graph})
    await memory.begin(turn := claimed_turn())
    with working_for(saver, turn.turn_id):
        await graph.ainvoke({"marks": []}, CONFIG)
    await memory.drain()
    await memory.commit(Ending(turn=turn, chunk=done(turn)))
    before = await saver.aget_tuple(place())
    await memory.shorten(turn)
    after = await saver.aget_tuple(place())
    assert before
    assert after
    assert after.checkpoint["id"] == before.checkpoint["id"]
    assert after.parent_config is None
    assert COUNTERS in before.metadata
    assert {**after.metadata, COUNTERS: before.metadata[COUNTERS]} == before.metadata
