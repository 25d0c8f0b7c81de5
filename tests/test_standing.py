"""What the database holds of a turn that is not over."""

import logging
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.base import CheckpointMetadata, empty_checkpoint
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]
from langgraph.graph.message import REMOVE_ALL_MESSAGES  # pyright: ignore[reportMissingTypeStubs]

from tests.memory import graph_of, place, put, working_for
from tests.turns_made import claimed_turn, done
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.memory import Memory
from worker.standing import NOTHING, Said

TURN = claimed_turn()
HI = HumanMessage("Hi.", id="h")
HELLO = AIMessage("Hello.", id="m")
BYE = AIMessage("Bye.", id="n")
RESULT = ToolMessage("out", tool_call_id="c1", id="r")
HELPER = ("tools:1",)
DEEPER = ("tools:1", "tools:2")


async def nothing(_: MessagesState) -> dict[str, Any]:
    return {}


@pytest.fixture
def memory(saver: TurnSaver) -> Memory:
    return Memory(saver, {"chat": graph_of(nothing, saver)})


@pytest.fixture
async def head(memory: Memory, saver: TurnSaver) -> str:
    """The head of the thread of a turn that runs."""
    await memory.begin(TURN)
    return await place_of(saver)


async def place_of(saver: TurnSaver, namespace: tuple[str, ...] = (), **metadata: Any) -> str:
    """A new checkpoint there; answers its id."""
    new, known = empty_checkpoint(), cast(CheckpointMetadata, {"source": "loop", **metadata})
    with working_for(saver, "turn"):
        await saver.aput(place(namespace="|".join(namespace)), new, known, {})
    return new["id"]


async def write(
    saver: TurnSaver,
    checkpoint_id: str,
    *written: object,
    task_id: str = "task",
    namespace: tuple[str, ...] = (),
    channel: str = "messages",
) -> None:
    """As a step does when it is done, before there is a checkpoint of it."""
    there = place(namespace="|".join(namespace), checkpoint_id=checkpoint_id)
    with working_for(saver, "turn"):
        await saver.aput_writes(there, [(channel, value) for value in written], task_id)


async def test_what_is_pending_stands_in_the_order_of_its_writing(
    memory: Memory, saver: TurnSaver, head: str
) -> None:
    await write(saver, head, [HI], task_id="z")
    await write(saver, head, [HELLO, RESULT], BYE, task_id="a")
    standing = await memory.standing(TURN)
    assert standing == ([Said((), each) for each in (HI, HELLO, RESULT, BYE)], {})


async def test_what_its_checkpoint_has_taken_in_stands_too(
    memory: Memory, saver: TurnSaver, head: str
) -> None:
    await write(saver, head, [HELLO])
    await write(saver, await place_of(saver), [BYE])
    assert (await memory.standing(TURN)).said == [Said((), HELLO), Said((), BYE)]


async def test_sub_agents_have_names(memory: Memory, saver: TurnSaver, head: str) -> None:
    helper = await place_of(saver, HELPER, lc_agent_name="helper")
    deeper = await place_of(saver, DEEPER, lc_agent_name="deeper")
    await place_of(saver, ("tools:3",), step=1)
    await write(saver, deeper, [HELLO], namespace=DEEPER)
    await write(saver, helper, [BYE], namespace=HELPER)
    standing = await memory.standing(TURN)
    assert standing.said == [Said(DEEPER, HELLO), Said(HELPER, BYE)]
    assert standing.agents == {HELPER: "helper", DEEPER: "deeper"}


async def test_other_channels_are_not_told(memory: Memory, saver: TurnSaver, head: str) -> None:
    await write(saver, head, [HELLO], channel="notes")
    await write(saver, head, [BYE], channel="__error__", task_id="another")
    assert await memory.standing(TURN) == NOTHING


async def test_a_history_that_was_written_anew_is_no_news(
    memory: Memory, saver: TurnSaver, head: str
) -> None:
    await write(saver, head, [RemoveMessage(REMOVE_ALL_MESSAGES), HELLO])
    await write(saver, head, "no message", None, {"messages": [HELLO]}, task_id="another")
    assert await memory.standing(TURN) == NOTHING


async def test_earlier_turns_do_not_count(memory: Memory, saver: TurnSaver, head: str) -> None:
    await write(saver, head, [HELLO])
    helper = await place_of(saver, HELPER, lc_agent_name="helper")
    await write(saver, helper, [RESULT], namespace=HELPER)
    memory.gate.close()
    await memory.commit(Ending(turn=TURN, chunk=done(TURN)))
    await memory.begin(again := claimed_turn(turn_id="turn", thread_id="thread"))
    assert await memory.standing(again) == NOTHING
    await write(saver, head, [BYE], task_id="later")
    assert await memory.standing(again) == ([Said((), BYE)], {})


async def test_other_threads_do_not_count(memory: Memory, saver: TurnSaver, head: str) -> None:
    await write(saver, head, [HELLO])
    memory.gate.close()
    other = claimed_turn(turn_id="other", thread_id="other")
    await memory.begin(other)
    await put(saver, turn_id="other", thread_id="other")
    assert await memory.standing(other) == NOTHING
    assert (await memory.standing(TURN)).said == [Said((), HELLO)]


async def test_a_value_that_cannot_be_read_does_not_stand(
    memory: Memory, saver: TurnSaver, head: str, caplog: pytest.LogCaptureFixture
) -> None:
    await write(saver, head, [HELLO], [BYE])
    await saver.conn.execute("UPDATE writes SET type = 'of the future' WHERE idx = 0")
    await saver.conn.commit()
    with caplog.at_level(logging.WARNING):
        assert (await memory.standing(TURN)).said == [Said((), BYE)]
    assert "cannot be read" in caplog.text
    assert "Hello" not in caplog.text


async def test_what_a_graph_was_given_is_not_what_it_said(
    memory: Memory, saver: TurnSaver, head: str
) -> None:
    await write(saver, await place_of(saver, source="input"), [HI, HELLO])
    helper = await place_of(saver, HELPER, source="input")
    await write(saver, helper, [HI, HELLO], namespace=HELPER)
    await write(saver, head, [BYE])
    assert (await memory.standing(TURN)).said == [Said((), BYE)]


async def test_what_is_written_again_stands_once(
    memory: Memory, saver: TurnSaver, head: str
) -> None:
    await write(saver, head, [HELLO])
    edited = HELLO.model_copy(update={"content": "Hello!"})
    await write(saver, head, [edited, BYE], task_id="another")
    assert (await memory.standing(TURN)).said == [Said((), HELLO), Said((), BYE)]


async def test_there_may_be_nothing(memory: Memory, saver: TurnSaver) -> None:
    assert await memory.standing(TURN) == NOTHING, "it has never begun"
    await memory.begin(TURN)
    assert await memory.standing(TURN) == NOTHING
    await write(saver, await place_of(saver), [HELLO])
    assert await memory.standing(claimed_turn(agent="gone")) == NOTHING


async def test_what_another_turn_has_written_is_not_this_one_s(
    memory: Memory, saver: TurnSaver, head: str
) -> None:
    await write(saver, head, [HELLO])
    assert (await memory.standing(TURN)).said
    assert await memory.standing(claimed_turn(turn_id="another")) == NOTHING
