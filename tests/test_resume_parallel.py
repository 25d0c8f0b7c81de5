"""A worker stops while one step speaks and another, beside it, is done."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langgraph.graph import MessagesState, StateGraph  # pyright: ignore[reportMissingTypeStubs]

from shared.claims import Claims
from shared.redis import Redis
from shared.turns import Turns
from tests.parts_made import LS, calling, result
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES, accept
from tests.two_steps import stop
from tests.until import until
from worker.checkpoints import TurnSaver
from worker.graph import Graph
from worker.memory import Memory
from worker.settings import WorkerSettings
from worker.turns import TurnRunner


class Speaker(BaseChatModel):
    """Says half of its answer, and the rest when it is let go."""

    half_said: asyncio.Event
    free: asyncio.Event

    @property
    def _llm_type(self) -> str:
        return "speaker"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk(content="half "))
        self.half_said.set()
        await self.free.wait()
        yield ChatGenerationChunk(message=AIMessageChunk(content="whole"))


def fork(saver: TurnSaver, speaker: Speaker) -> Graph:
    """A tool is called; its result comes while the model speaks."""

    async def call(_: MessagesState) -> dict[str, Any]:
        return {"messages": [calling(LS)]}

    async def speak(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await speaker.ainvoke(state["messages"])]}

    async def answer(_: MessagesState) -> dict[str, Any]:
        await speaker.half_said.wait()
        return {"messages": [result("out")]}

    graph: Any = StateGraph(MessagesState)
    for name, node in (("call", call), ("speak", speak), ("answer", answer)):
        graph.add_node(name, node)
    graph.set_entry_point("call")
    graph.add_edge("call", "speak")
    graph.add_edge("call", "answer")
    return graph.compile(checkpointer=saver)


@pytest.fixture
async def speaker() -> Speaker:
    return Speaker(half_said=asyncio.Event(), free=asyncio.Event())


async def test_what_stands_behind_what_does_not_is_told_again(
    turns: Turns, redis: Redis, saver: TurnSaver, valkey: RedisSeen, speaker: Speaker
) -> None:
    agents = {"chat": fork(saver, speaker)}
    memory = Memory(saver, agents)

    def worker() -> TurnRunner:
        return TurnRunner(Claims(redis, LIFETIMES), memory, agents, WorkerSettings())

    def told() -> list[str]:
        return [chunk["content"] or chunk["type"] for chunk in log_of(valkey, turn.turn_id)]

    turn = await accept(turns)
    running = asyncio.create_task((first := worker()).run(turn.turn_id))
    await until(lambda: "out" in told() and "half " in told())
    while len((await memory.standing(turn)).said) < 2:
        await asyncio.sleep(0)
    await stop(first, running)
    again = ["queued", "ls", "half ", "out", "rewind", "out", "queued"]
    assert told() == again
    assert log_of(valkey, turn.turn_id)[4]["metadata"]["to_seq"] == 2
    speaker.free.set()
    await worker().run(turn.turn_id)
    rest = told()[len(again) :]
    assert ("".join(rest[:-1]), rest[-1]) == ("half whole", "done")
    assert log_of(valkey, turn.turn_id)[-1]["metadata"]["tool_calls"] == 1
