"""A sealed thread is short, and the same for the agent that goes on with it."""

import json
import operator
import re
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import MessagesState, StateGraph  # pyright: ignore[reportMissingTypeStubs]

from shared.record import TurnRecord
from tests.fake_llama import FakeLlama, Reply
from tests.memory import graph_of, put, rows, working_for
from tests.service import run_service, text_of
from tests.turns_made import claimed_turn, done
from worker import memory as memory_module
from worker import seal as seal_module
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.memory import Memory
from worker.state import SealedHead

NEVER = 10**9
CONFIG = {"configurable": {"thread_id": "thread"}}


def talk() -> list[Reply]:
    """Four turns that write a file, change it, ask a sub-agent, read the file again."""
    edit = {"file_path": "/a.txt", "old_string": "one", "new_string": "two"}
    ask = {"description": "Look.", "subagent_type": "general-purpose"}
    return [
        Reply(tool_calls=[("write_file", {"file_path": "/a.txt", "content": "one"})]),
        Reply(content="written"),
        Reply(tool_calls=[("edit_file", edit)]),
        Reply(content="changed"),
        Reply(tool_calls=[("task", ask)]),
        Reply(tool_calls=[("ls", {"path": "/"})]),
        Reply(content="looked"),
        Reply(content="it looked"),
        Reply(tool_calls=[("read_file", {"file_path": "/a.txt"})]),
        Reply(content="it says two"),
    ]


async def bodies(
    redis_url: str, folder: Path, from_rows: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[str]]:
    """What the model server is asked in four turns on one thread, and the answers."""
    monkeypatch.setattr(seal_module, "FROM_ROWS", from_rows)
    async with (
        FakeLlama(talk()) as llama,
        run_service(redis_url, llama.base_url, folder) as service,
    ):
        answers = [text_of(await service.ask(f"Turn {n}", thread_id="t")) for n in range(4)]
    return without_ids([call.body for call in llama.calls]), answers


def without_ids(asked: list[dict[str, Any]]) -> list[str]:
    """The bodies as JSON, with the tool calls' random ids replaced by numbers."""
    calls = [
        call["id"]
        for message in asked[-1]["messages"] + asked[6]["messages"]
        for call in message.get("tool_calls", [])
    ]
    numbers = {call_id: str(number) for number, call_id in enumerate(calls)}
    return [
        re.sub("|".join(calls), lambda found: numbers[found[0]], json.dumps(body)) for body in asked
    ]


async def test_the_agent_does_not_notice(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = await bodies(redis_url, tmp_path, NEVER, monkeypatch)
    (tmp_path / "checkpoints.sqlite").rename(tmp_path / "long.sqlite")
    short = await bodies(redis_url, tmp_path, 1, monkeypatch)
    assert short == long
    assert short[1] == ["written", "changed", "it looked", "it says two"]
    assert "two" in short[0][-1], "the file was read"


class Notes(TypedDict):
    """A list that grows."""

    notes: Annotated[list[str], operator.add]


def graph_with_a_memory_inside(saver: TurnSaver) -> Any:
    """A graph whose inner graph counts its own turns."""

    def count(_: Notes) -> dict[str, Any]:
        return {"notes": ["again"]}

    inner: Any = StateGraph(Notes)
    inner.add_node("count", count)
    inner.set_entry_point("count")

    def tell(state: Notes) -> dict[str, Any]:
        return {"notes": [str(len(remembering.invoke({"notes": []})["notes"]))]}

    remembering = inner.compile(checkpointer=True)
    outer: Any = StateGraph(Notes)
    outer.add_node("tell", tell)
    outer.set_entry_point("tell")
    return outer.compile(checkpointer=saver)


async def run(saver: TurnSaver, memory: Memory, graph: Any, number: int) -> list[str]:
    """One turn; answers the notes after it."""
    turn = claimed_turn(turn_id=str(number))
    await memory.begin(turn)
    with working_for(saver, turn.turn_id):
        state = await graph.ainvoke({"notes": []}, CONFIG)
    await memory.drain()
    await memory.commit(Ending(turn=turn, chunk=done(turn)))
    await memory.shorten(turn)
    return state["notes"]


@pytest.mark.parametrize("from_rows", [1, NEVER])
async def test_a_memory_inside_is_kept(
    saver: TurnSaver, monkeypatch: pytest.MonkeyPatch, from_rows: int
) -> None:
    monkeypatch.setattr(seal_module, "FROM_ROWS", from_rows)
    graph = graph_with_a_memory_inside(saver)
    memory = Memory(saver, {"chat": graph})
    notes = [await run(saver, memory, graph, number) for number in range(1, 4)]
    assert notes[-1] == ["1", "2", "3"]
    own = [row for row in (await rows(saver))["checkpoints"] if row[1] == ""]
    assert (len(own) == 1) is (from_rows == 1)


@pytest.fixture
async def long_thread(saver: TurnSaver, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A thread that has been sealed."""
    monkeypatch.setattr(seal_module, "FROM_ROWS", 1)
    graph = graph_with_a_memory_inside(saver)
    memory = Memory(saver, {"chat": graph})
    await run(saver, memory, graph, 1)
    return memory


async def test_a_sealed_thread_is_restored_row_for_row(
    saver: TurnSaver, long_thread: Memory
) -> None:
    before = await rows(saver)
    await long_thread.begin(turn := claimed_turn(turn_id="2"))
    await put(saver, turn_id="2")
    fence = await long_thread.fence_of(turn.thread_id)
    assert fence
    await long_thread.restore(fence, None)
    assert await rows(saver) == before


async def unchanged_by_shortening(memory: Memory, saver: TurnSaver, turn: TurnRecord) -> bool:
    before = await rows(saver)
    await memory.shorten(turn)
    return await rows(saver) == before


async def test_a_thread_with_a_fence_is_not_sealed(saver: TurnSaver, long_thread: Memory) -> None:
    await long_thread.begin(turn := claimed_turn(turn_id="2"))
    with working_for(saver, "2"):
        await graph_with_a_memory_inside(saver).ainvoke({"notes": []}, CONFIG)
    assert await unchanged_by_shortening(long_thread, saver, turn)


async def test_a_thread_with_something_pending_is_not_sealed(
    saver: TurnSaver, long_thread: Memory
) -> None:
    await long_thread.begin(turn := claimed_turn(turn_id="2"))
    await put(saver, turn_id="2")
    await long_thread.drain()
    await long_thread.commit(Ending(turn=turn, chunk=done(turn)))
    assert await unchanged_by_shortening(long_thread, saver, turn)


async def test_rows_that_stay_do_not_make_a_thread_long(
    saver: TurnSaver, long_thread: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = [row for row in (await rows(saver))["checkpoints"] if row[1] != ""]
    assert len(inner) >= 3
    monkeypatch.setattr(seal_module, "FROM_ROWS", 2)
    for number in range(2, 4):
        assert await unchanged_by_shortening(long_thread, saver, claimed_turn(turn_id=str(number)))


async def test_nothing_goes_when_the_head_is_another_one(
    saver: TurnSaver, long_thread: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def another(*_: object) -> SealedHead:
        return SealedHead("another", "msgpack", b"", b"{}")

    monkeypatch.setattr(memory_module, "seal_head", another)
    before = await rows(saver)
    with pytest.raises(seal_module.HeadGone):
        await long_thread.shorten(claimed_turn())
    assert await rows(saver) == before


async def test_a_thread_of_another_agent_is_not_sealed(
    saver: TurnSaver, long_thread: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", "hi")]}

    monkeypatch.setattr(seal_module, "FROM_ROWS", 0)
    others = Memory(saver, {"chat": graph_of(answer, saver)})
    assert await unchanged_by_shortening(others, saver, claimed_turn(turn_id="2"))
