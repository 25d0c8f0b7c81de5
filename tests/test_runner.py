"""One turn on graphs of every temper: whatever happens, it ends once and says how."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]

from shared.chunks import Done, Error, Terminal, parse
from shared.claims import Claims
from shared.errors import Fenced
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import Node, graph_of
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES, accept, claim, text
from worker import run as run_module
from worker.checkpoints import TurnSaver
from worker.memory import Memory
from worker.settings import WorkerSettings
from worker.turns import TurnRunner

SECRET = "the password is swordfish"


async def say_hi(_: MessagesState) -> dict[str, Any]:
    return {"messages": [("ai", "hi")]}


async def fail(_: MessagesState) -> dict[str, Any]:
    raise ValueError(SECRET)


async def wait(_: MessagesState) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


RunnerOf = Callable[..., TurnRunner]


@pytest.fixture
def runner_of(redis: Redis, saver: TurnSaver) -> RunnerOf:
    """Makes a runner whose agent has one node."""

    def make(node: Node, *, again: bool = False, **settings: Any) -> TurnRunner:
        agents = {"chat": graph_of(node, saver, again=again)}
        memory = Memory(saver, agents)
        return TurnRunner(Claims(redis, LIFETIMES), memory, agents, WorkerSettings(**settings))

    return make


@asynccontextmanager
async def running(
    turns: Turns, runner: TurnRunner
) -> AsyncGenerator[tuple[TurnRecord, asyncio.Task[None]]]:
    """A turn that the runner has begun; its task ends before the block does."""
    turn = await accept(turns)
    task = asyncio.create_task(runner.run(turn.turn_id))
    while (turn := await turns.read(turn.turn_id)).status != "running":
        await asyncio.sleep(0.002)
    yield turn, task
    await asyncio.wait_for(asyncio.wait({task}), 30)


async def end_of(turns: Turns, valkey: RedisSeen, turn_id: str) -> Terminal:
    """The turn's last chunk, after checking that it is its only terminal one."""
    log = [parse(chunk_json)[1] for chunk_json in told(valkey, turn_id)]
    assert [chunk.completed for chunk in log].count(True) == 1
    last = log[-1]
    assert isinstance(last, Done | Error)
    record = await turns.read(turn_id)
    assert record.ended
    if isinstance(last, Error):
        assert record.error
        assert (record.error.code, record.error.message) == (last.metadata.code, last.content)
    return last


def told(valkey: RedisSeen, turn_id: str) -> list[bytes]:
    """The turn's log as a follower would be sent it."""
    return [
        json.dumps({**chunk, "seq": int(chunk["id"].partition("-")[0])}).encode()
        for chunk in log_of(valkey, turn_id)
    ]


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


async def test_an_agent_that_fails_says_nothing_of_what_it_read(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen, caplog: pytest.LogCaptureFixture
) -> None:
    turn = await accept(turns)
    with caplog.at_level(logging.INFO):
        await runner_of(fail).run(turn.turn_id)
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert (end.metadata.code, end.content) == ("agent", "The agent failed with ValueError.")
    assert turn.turn_id in caplog.text
    assert "in fail" in caplog.text, "the log tells where"
    assert SECRET not in caplog.text


async def test_an_agent_that_never_ends_reaches_the_step_limit(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen
) -> None:
    turn = await accept(turns)
    await runner_of(say_hi, again=True, STEP_LIMIT=5).run(turn.turn_id)
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert end.metadata.code == "step_limit"


async def test_a_turn_has_a_limit_of_time(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen
) -> None:
    turn = await accept(turns)
    await runner_of(wait, TURN_TIMEOUT_S=0.05).run(turn.turn_id)
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert end.metadata.code == "timeout"


async def test_an_agent_that_will_not_be_cancelled_is_left_behind(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "CANCEL_S", 0.05)
    free = asyncio.Event()

    async def stay(_: MessagesState) -> dict[str, Any]:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        return {"messages": [("ai", "too late")]}

    turn = await accept(turns)
    await runner_of(stay, TURN_TIMEOUT_S=0.05).run(turn.turn_id)
    before = told(valkey, turn.turn_id)
    free.set()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=5)
    assert told(valkey, turn.turn_id) == before
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert end.metadata.code == "timeout"


async def test_an_agent_that_only_the_api_knows(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen
) -> None:
    turn = await accept(turns, agent="theirs")
    await runner_of(say_hi).run(turn.turn_id)
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert end.metadata.code == "agent"
    assert "theirs" in end.content


async def test_a_worker_that_stops_ends_its_turn(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen
) -> None:
    runner = runner_of(wait)
    async with running(turns, runner) as (turn, _):
        runner.stop()
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert end.metadata.code == "worker_lost"


async def test_a_turn_begun_while_the_worker_stops_ends_at_once(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen
) -> None:
    runner = runner_of(wait)
    runner.stop()
    turn = await accept(turns)
    await asyncio.wait_for(runner.run(turn.turn_id), 30)
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert end.metadata.code == "worker_lost"


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


async def test_an_agent_that_cancels_itself(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen
) -> None:
    async def give_up(_: MessagesState) -> dict[str, Any]:
        raise asyncio.CancelledError

    turn = await accept(turns)
    await runner_of(give_up).run(turn.turn_id)
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert end.metadata.code == "agent"


async def test_an_agent_that_raises_no_ordinary_error(
    turns: Turns, runner_of: RunnerOf, valkey: RedisSeen
) -> None:
    class Odd(BaseException):
        pass

    async def raise_odd(_: MessagesState) -> dict[str, Any]:
        raise Odd(SECRET)

    turn = await accept(turns)
    await runner_of(raise_odd).run(turn.turn_id)
    end = await end_of(turns, valkey, turn.turn_id)
    assert isinstance(end, Error)
    assert (end.metadata.code, end.content) == ("agent", "The agent failed with Odd.")
