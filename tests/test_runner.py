"""One turn: it ends once and says how, and belongs to whoever claimed it last."""

import asyncio
from typing import Any

import pytest
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]

from shared.chunks import Done, Error
from shared.claims import Claims
from shared.errors import Fenced
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import graph_of, rows, untold
from tests.redis_seen import RedisSeen, log_of
from tests.runners import Held, RunnerOf, begin, end_of, runners, running, say_hi, wait
from tests.turns_made import LIFETIMES, accept, claim, entry, text
from worker.checkpoints import TurnSaver
from worker.failures import worker_lost
from worker.memory import Memory
from worker.state import count_messages


@pytest.fixture
def runner_of(redis: Redis, saver: TurnSaver) -> RunnerOf:
    return runners(redis, saver)


async def test_a_turn_is_done(turns: Turns, runner_of: RunnerOf, valkey: RedisSeen) -> None:
    turn = await accept(turns)
    await runner_of(say_hi).run(turn.turn_id)
    assert isinstance(await end_of(turns, valkey, turn.turn_id), Done)


async def test_a_turn_that_has_ended_is_left_alone(turns: Turns, runner_of: RunnerOf) -> None:
    turn = await accept(turns)
    runner = runner_of(say_hi)
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    await runner.run(turn.turn_id)
    await runner.run("nobody")
    assert await turns.read(turn.turn_id) == ended


async def test_a_turn_has_a_limit_of_time(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen
) -> None:
    turn = await accept(turns)
    await runner_of(wait, TURN_TIMEOUT_S=0.05).run(turn.turn_id)
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert end.metadata.code == "timeout"


async def test_a_turn_that_another_worker_took_is_left_to_it(
    turns: Turns, redis: Redis, runner_of: RunnerOf
) -> None:
    free = asyncio.Event()

    async def speak_when_free(_: MessagesState) -> dict[str, Any]:
        await free.wait()
        return {"messages": [("ai", "hi")]}

    others = Claims(redis, LIFETIMES)
    async with running(turns, runner_of(speak_when_free)) as (turn, task):
        mine = await claim(others, turn)
        free.set()
        with pytest.raises(Fenced):
            await task
    assert (await turns.read(turn.turn_id)).status == "running"
    answer = await others.publish(mine, entry(mine.seq + 1, text(mine, "mine")))
    assert answer.last == mine.seq + 1


async def test_a_turn_that_ended_is_told_and_not_run_again_when_redis_forgot(
    turns: Turns, redis: Redis, saver: TurnSaver, valkey: RedisSeen, runner_of: RunnerOf
) -> None:
    held = Held()
    held.free.set()
    memory = Memory(saver, {"chat": graph_of(held.answer, saver)}, kept_s=0)
    runner = runner_of(held.answer, memory=memory)
    turn = await accept(turns)
    others = Claims(redis, LIFETIMES)
    committed = memory.commit

    async def commit(ending: Any) -> None:
        await committed(ending)
        mine = await claim(others, turn)  # as if the claim before had been forgotten
        await others.publish(mine, entry(mine.seq + 1, text(mine, "a trace of it")))

    memory.commit = commit
    with pytest.raises(Fenced):
        await runner.run(turn.turn_id)
    await runner.run(turn.turn_id)
    assert held.begun == 1
    assert (await turns.read(turn.turn_id)).status == "done"
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)][-1] == "done"
    assert await untold(memory) == []


async def test_a_turn_that_a_dead_worker_left_is_gone_on_with(
    turns: Turns, saver: TurnSaver, valkey: RedisSeen, runner_of: RunnerOf
) -> None:
    turn = await accept(turns)
    killed = await begin(runner_of((held := Held()).answer), turn, held)
    killed.cancel()
    await asyncio.wait({killed})
    await runner_of(say_hi).run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.attempt, ended.claim) == ("done", 2, 2)
    types = [chunk["type"] for chunk in log_of(valkey, turn.turn_id)]
    assert types == ["queued", "rewind", "text", "done"]
    agent = graph_of(say_hi, saver)
    assert await count_messages(agent, turn.thread_id) == 2


@pytest.mark.parametrize(("setting", "lost"), [("resume", 2), ("rollback", 1)])
async def test_a_turn_that_has_cost_its_workers_is_undone(
    turns: Turns, saver: TurnSaver, runner_of: RunnerOf, setting: str, lost: int
) -> None:
    turn, held = await accept(turns), Held()
    for _ in range(lost):
        killed = await begin(runner_of(held.answer), turn, held)
        killed.cancel()
        await asyncio.wait({killed})
    await runner_of(held.answer, ON_WORKER_LOST=setting).run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.error, ended.attempt, held.begun) == (worker_lost(lost), lost + 1, lost)
    assert await rows(saver) == {"checkpoints": [], "writes": []}
