"""Agents whose `messages` are none: their turns end like any other, and the next one runs."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import StateGraph  # pyright: ignore[reportMissingTypeStubs]

from shared.claims import Claims
from shared.record import TurnRequest
from shared.redis import Redis
from shared.turns import Turns
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES, accept
from tests.until import until
from worker.checkpoints import TurnSaver
from worker.errors import BrokenOff
from worker.memory import Memory
from worker.settings import WorkerSettings
from worker.turns import TurnRunner


class Texts(TypedDict):
    messages: Annotated[list[str], operator.add]


class Number(TypedDict):
    messages: Annotated[int, operator.add]


KINDS = pytest.mark.parametrize(("state", "one"), [(Texts, ["one"]), (Number, 1)])


class Strange:
    """An agent of two steps, the second of which waits when it is told to."""

    def __init__(self, saver: TurnSaver, state: type, one: object) -> None:
        self.holds = False
        self.begun = 0
        self._one = one
        graph: Any = StateGraph(state)  # pyright: ignore[reportUnknownVariableType]
        graph.add_node("first", self._first)
        graph.add_node("second", self._second)
        graph.set_entry_point("first")
        graph.add_edge("first", "second")
        self.agents = {"chat": graph.compile(checkpointer=saver)}

    async def _first(self, _: Any) -> dict[str, Any]:
        return {"messages": self._one}

    async def _second(self, _: Any) -> dict[str, Any]:
        self.begun += 1
        if self.holds:
            await asyncio.Event().wait()
        return {"messages": self._one}


@KINDS
async def test_one_that_is_broken_off_is_gone_on_with(
    turns: Turns, redis: Redis, saver: TurnSaver, state: type, one: object
) -> None:
    strange = Strange(saver, state, one)
    runner = runner_of(redis, saver, strange)
    given = {"thread_id": "thread", "request": TurnRequest(input={"messages": one})}
    await runner.run((await accept(turns, **given)).turn_id)
    strange.holds = True
    turn = await accept(turns, **given)
    running = asyncio.create_task(runner.run(turn.turn_id))
    await until(lambda: strange.begun == 2)
    runner.stop()
    with pytest.raises(BrokenOff):
        await running
    strange.holds = False
    await runner_of(redis, saver, strange).run(turn.turn_id)
    assert (await turns.read(turn.turn_id)).status == "done"


@KINDS
async def test_one_that_is_cancelled_is_undone(
    turns: Turns, redis: Redis, saver: TurnSaver, state: type, one: object
) -> None:
    strange = Strange(saver, state, one)
    runner = runner_of(redis, saver, strange)
    given = {"request": TurnRequest(input={"messages": one})}
    strange.holds = True
    turn = await accept(turns, **given)
    running = asyncio.create_task(runner.run(turn.turn_id))
    await until(lambda: strange.begun)
    runner.cancel(turn.turn_id)
    await running
    assert (await turns.read(turn.turn_id)).status == "cancelled"
    strange.holds = False
    await runner.run((another := await accept(turns, **given)).turn_id)
    assert (await turns.read(another.turn_id)).status == "done"


async def test_redis_is_emptied_between_the_claim_and_the_rest(
    turns: Turns, redis: Redis, saver: TurnSaver, valkey: RedisSeen
) -> None:
    class Emptied(Claims):
        async def claim(self, turn_id: str, run_id: str = "") -> Any:
            turn = await super().claim(turn_id, run_id)
            valkey.flushall()
            return turn

    strange = Strange(saver, Texts, ["one"])
    runner = runner_of(redis, saver, strange, Emptied(redis, LIFETIMES))
    turn = await accept(turns, request=TurnRequest(input={"messages": ["one"]}))
    await runner.run(turn.turn_id)
    assert (await turns.read(turn.turn_id)).status == "done"
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued", "done"]


def runner_of(
    redis: Redis, saver: TurnSaver, strange: Strange, claims: Claims | None = None
) -> TurnRunner:
    return TurnRunner(
        claims or Claims(redis, LIFETIMES),
        Memory(saver, strange.agents),
        strange.agents,
        WorkerSettings(),
    )
