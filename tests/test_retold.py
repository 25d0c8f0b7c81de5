"""What a turn told as it ran is what is told of it from the database, for graphs of any kind."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]
from msgspec.structs import replace

from shared.chunks import Chunk, Interruption, Rewind, ToolResult
from tests.memory import Node, chain_of, working_for
from tests.parts_made import CAT, LS, calling, result
from tests.turns_made import claimed_turn, done, entry, queued
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.graph import Graph, stream_parts
from worker.memory import Memory
from worker.rewind import set_right
from worker.standing import Standing
from worker.translate import Translator

TURN = claimed_turn()


def say(*messages: AnyMessage) -> Node:
    """A step that says this, whoever has spoken before."""

    async def answer(_: MessagesState) -> dict[str, Any]:
        return {"messages": [message.model_copy() for message in messages]}

    return answer


async def edit(state: MessagesState) -> dict[str, Any]:
    """As a middleware does that writes the last message again."""
    last = state["messages"][-1]
    return {"messages": [last.model_copy(update={"additional_kwargs": {"edited": True}})]}


async def edit_first(state: MessagesState) -> dict[str, Any]:
    """And what was said long ago."""
    first = next(message for message in state["messages"] if isinstance(message, AIMessage))
    return {"messages": [first.model_copy(update={"additional_kwargs": {"edited": True}})]}


HELLO, BYE = say(AIMessage("Hello")), say(AIMessage("Bye"))

GRAPHS: dict[str, Callable[[TurnSaver], Graph]] = {
    "steps": lambda saver: chain_of(saver, HELLO, BYE),
    "tools": lambda saver: chain_of(
        *(saver, say(calling(LS, CAT))),
        *(say(result("a"), result("b", "c2", name="cat")), BYE),
    ),
    "a step that edits": lambda saver: chain_of(saver, HELLO, edit, BYE),
    "a step that edits what came before": lambda saver: chain_of(saver, HELLO, BYE, edit_first),
    "a graph as a step": lambda saver: chain_of(saver, BYE, chain_of(None, HELLO), BYE),
}


class Ran(NamedTuple):
    """`told`: while it ran. `standing`: what the database holds before the turn ends."""

    told: list[Chunk]
    standing: Standing


async def run(saver: TurnSaver, graph: Graph, *given: AnyMessage, turn_id: str = "turn") -> Ran:
    """The turn from its begin to its end."""
    turn = claimed_turn(turn_id=turn_id)
    memory, translator = Memory(saver, {"chat": graph}), Translator(turn_id, 2000)
    await memory.begin(turn)
    with working_for(saver, turn_id):
        parts = stream_parts(
            graph, {"messages": list(given)}, {"configurable": {"thread_id": "thread"}}
        )
        told = [chunk async for part in parts for chunk in translator.translate(part)]
    memory.gate.close()
    standing = await memory.standing(turn)
    await memory.commit(Ending(turn=turn, chunk=done(turn)))
    return Ran(told, standing)


def retell(standing: Standing, *told: Chunk) -> list[Chunk]:
    """What is told to followers that hold this."""
    log = [entry(seq, chunk) for seq, chunk in enumerate((queued(TURN), *told), 1)]
    return set_right(log, standing, Translator("turn", 2000), "worker_lost", 2)


def rewind(to_seq: int) -> Rewind:
    return Rewind(turn_id="turn", metadata=Interruption(to_seq, "worker_lost"))


def less_times(told: list[Chunk]) -> list[Chunk]:
    """A result that is told again does not say how long it took."""
    return [_less_time(chunk) if isinstance(chunk, ToolResult) else chunk for chunk in told]


def _less_time(chunk: ToolResult) -> ToolResult:
    return replace(chunk, metadata=replace(chunk.metadata, elapsed_s=None))


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS.keys())
async def test_all_of_it_stands(saver: TurnSaver, make: Callable[[TurnSaver], Graph]) -> None:
    told, standing = await run(saver, make(saver), HumanMessage("Hi."))
    assert told
    assert less_times(retell(standing)) == [rewind(1), *less_times(told)]
    assert retell(standing, *told) == [rewind(1 + len(told))]


@pytest.mark.parametrize("name", ["a graph as a step", "a step that edits what came before"])
async def test_what_was_said_in_earlier_turns_is_not_told(saver: TurnSaver, name: str) -> None:
    graph = GRAPHS[name](saver)
    await run(saver, graph, HumanMessage("Hi."), turn_id="earlier")
    told, standing = await run(saver, graph, HumanMessage("Well?"))
    assert retell(standing) == [rewind(1), *told]


async def test_what_the_input_says_for_the_agent_is_not_told(saver: TurnSaver) -> None:
    graph = GRAPHS["a graph as a step"](saver)
    told, standing = await run(saver, graph, AIMessage("As I said:"), HumanMessage("Well?"))
    assert retell(standing) == [rewind(1), *told]
