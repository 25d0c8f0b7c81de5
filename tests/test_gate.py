"""Only the open turn writes, only on its thread, and only above what is there."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]

from tests.memory import Rows, graph_of, place, put, rows, working_for
from worker.checkpoints import TurnSaver, open_checkpoints
from worker.gate import CURRENT_TURN, Gate, OpenTurn, PutRefused, TurnClosed

NOTHING: Rows = {"checkpoints": [], "writes": []}


def open_for(saver: TurnSaver, turn_id: str = "turn", above: str = "") -> None:
    saver.gate.open(OpenTurn(turn_id, "thread", above))


async def test_what_the_open_turn_puts_is_stored(saver: TurnSaver) -> None:
    open_for(saver)
    await put(saver)
    stored = await rows(saver)
    assert [len(stored[table]) for table in stored] == [1, 1]


async def test_nothing_is_stored_before_a_turn_and_after_it(saver: TurnSaver) -> None:
    with pytest.raises(TurnClosed):
        await put(saver)
    open_for(saver)
    saver.gate.close()
    with pytest.raises(TurnClosed):
        await put(saver)
    assert await rows(saver) == NOTHING


@pytest.mark.parametrize("turn_id", ["", "an earlier turn"])
async def test_nobody_else_writes_while_a_turn_is_open(saver: TurnSaver, turn_id: str) -> None:
    open_for(saver)
    with pytest.raises(TurnClosed):
        await put(saver, turn_id=turn_id)
    assert await rows(saver) == NOTHING


async def test_a_turn_writes_to_no_other_thread(saver: TurnSaver) -> None:
    open_for(saver)
    with pytest.raises(PutRefused, match="own thread"):
        await put(saver, thread_id="another")
    assert await rows(saver) == NOTHING


async def test_a_checkpoint_goes_above_those_that_the_thread_has(saver: TurnSaver) -> None:
    open_for(saver)
    below = empty_checkpoint()
    highest = await put(saver, namespace="a sub-agent's")
    saver.gate.close()
    before = await rows(saver)

    open_for(saver, "next", above=highest)
    at_highest = empty_checkpoint()
    at_highest["id"] = highest
    for checkpoint in (below, at_highest):
        with pytest.raises(PutRefused, match="above"):
            await put(saver, turn_id="next", checkpoint=checkpoint)
    assert await rows(saver) == before
    assert await put(saver, turn_id="next") > highest


async def test_an_agent_deletes_no_thread(saver: TurnSaver) -> None:
    open_for(saver)
    await put(saver)
    before = await rows(saver)
    with pytest.raises(PutRefused):
        await saver.adelete_thread("thread")
    assert await rows(saver) == before


async def test_the_copy_that_a_graph_takes_of_the_saver_has_the_same_gate(
    saver: TurnSaver,
) -> None:
    async def answer(_: MessagesState) -> dict[str, object]:
        return {}

    copy: Any = cast(Any, graph_of(answer, saver)).checkpointer
    assert isinstance(copy, TurnSaver)
    assert copy is not saver, "LangGraph no longer takes a copy: say so in worker/gate.py"
    assert copy.gate is saver.gate


async def test_whoever_is_alone_after_closing_sees_all_that_was_begun(saver: TurnSaver) -> None:
    open_for(saver)
    async with saver.gate.alone():
        begun = [asyncio.create_task(put(saver)) for _ in range(3)]
        await asyncio.sleep(0)  # they have passed the gate, and wait
        assert await rows(saver) == NOTHING
    saver.gate.close()
    late = [asyncio.create_task(put(saver)) for _ in range(3)]
    async with saver.gate.alone():
        at_rest = await rows(saver)
        assert len(at_rest["checkpoints"]) == 3
        for outcome in await asyncio.gather(*begun, *late, return_exceptions=True):
            assert isinstance(outcome, TurnClosed)  # those begun: in their second half
    assert await rows(saver) == at_rest


async def test_whoever_wants_to_be_alone_waits_for_a_put_that_is_under_way(
    saver: TurnSaver,
) -> None:
    open_for(saver)
    await saver.lock.acquire()  # a put can pass the gate, and not go on
    putting = asyncio.create_task(put(saver))
    await asyncio.sleep(0)
    saver.gate.close()
    alone = asyncio.create_task(_be_alone(saver))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not alone.done()
    saver.lock.release()
    assert len((await alone)["checkpoints"]) == 1
    with pytest.raises(TurnClosed):
        await putting


async def _be_alone(saver: TurnSaver) -> Rows:
    async with saver.gate.alone():
        return await rows(saver)


async def test_a_turn_that_is_run_again_lets_nothing_in_of_its_first_run(
    saver: TurnSaver,
) -> None:
    open_for(saver)
    with working_for(saver, "turn"):
        late = asyncio.create_task(saver.aput(place(), empty_checkpoint(), {}, {}))
    saver.gate.close()
    open_for(saver)
    with pytest.raises(TurnClosed):
        await late
    assert await rows(saver) == NOTHING


def test_who_works_for_no_turn_may_ask_the_model_and_who_is_over_may_not() -> None:
    gate, turn = Gate(), OpenTurn("turn", "thread", "")
    gate.check_caller()
    token = CURRENT_TURN.set(turn)
    with pytest.raises(TurnClosed):
        gate.check_caller()
    gate.open(turn)
    gate.check_caller()
    gate.close()
    gate.open(OpenTurn("turn", "thread", ""))
    with pytest.raises(TurnClosed):
        gate.check_caller()
    CURRENT_TURN.reset(token)


async def test_the_gate_is_that_of_one_database(tmp_path: Path, saver: TurnSaver) -> None:
    open_for(saver)
    async with open_checkpoints(tmp_path / "another.sqlite") as another:
        with pytest.raises(TurnClosed):
            await put(another)
