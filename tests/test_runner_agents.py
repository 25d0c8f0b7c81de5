"""One turn on agents of every temper: whatever happens, it ends once and says how."""

import asyncio
import logging
from typing import Any

import pytest
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]

from shared.chunks import Error
from shared.redis import Redis
from shared.turns import Turns
from tests.redis_seen import RedisSeen
from tests.runners import RunnerOf, end_of, runners, say_hi, told
from tests.turns_made import accept
from worker import run as run_module
from worker.checkpoints import TurnSaver

SECRET = "the password is swordfish"


async def fail(_: MessagesState) -> dict[str, Any]:
    raise ValueError(SECRET)


@pytest.fixture
def runner_of(redis: Redis, saver: TurnSaver) -> RunnerOf:
    return runners(redis, saver)


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
