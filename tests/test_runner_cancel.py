"""A running turn is cancelled, at each moment at which that is decided."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]

from shared.claims import Claims
from shared.errors import Fenced
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import Rows, graph_of, rows
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES, accept, claim, text
from tests.until import until
from worker.checkpoints import TurnSaver
from worker.memory import Memory
from worker.settings import WorkerSettings
from worker.turns import TurnRunner

UNTOUCHED: Rows = {"checkpoints": [], "writes": []}


class Held:
    """An agent that says something and then waits until it is let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.free = asyncio.Event()

    async def answer(self, _: MessagesState) -> dict[str, Any]:
        self.begun += 1
        await self.free.wait()
        return {"messages": [("ai", "hi")]}


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def memory(saver: TurnSaver, held: Held) -> Memory:
    return Memory(saver, {"chat": graph_of(held.answer, saver)})


@pytest.fixture
async def runner(redis: Redis, saver: TurnSaver, memory: Memory, held: Held) -> TurnRunner:
    agents = {"chat": graph_of(held.answer, saver)}
    settings = WorkerSettings(TURN_TIMEOUT_S=60)
    return TurnRunner(Claims(redis, LIFETIMES), memory, agents, settings)


async def begin(runner: TurnRunner, turn: TurnRecord, held: Held) -> asyncio.Task[None]:
    running = asyncio.create_task(runner.run(turn.turn_id))
    await until(lambda: held.begun)
    return running


def after(
    monkeypatch: pytest.MonkeyPatch, memory: Memory, name: str, also: Callable[[], Awaitable[Any]]
) -> None:
    """Has `also` happen right after the memory has done `name`."""
    whole = getattr(memory, name)

    async def do(*args: Any) -> Any:
        answer = await whole(*args)
        await also()
        return answer

    monkeypatch.setattr(memory, name, do)


async def test_the_word_of_a_cancel_ends_the_turn(
    turns: Turns, runner: TurnRunner, held: Held, saver: TurnSaver
) -> None:
    running = await begin(runner, turn := await accept(turns), held)
    runner.cancel("another")
    assert (await turns.cancel(turn.turn_id)).turn.status == "cancelling"
    runner.cancel(turn.turn_id)
    runner.cancel(turn.turn_id)
    await running
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.rolled_back_messages) == ("cancelled", 1)
    assert await rows(saver) == UNTOUCHED


async def test_a_word_that_was_lost_is_looked_for(
    turns: Turns, runner: TurnRunner, held: Held
) -> None:
    await runner.look_for_cancel()  # nothing has ever run
    running = await begin(runner, turn := await accept(turns), held)
    await runner.look_for_cancel()
    assert not running.done()
    await turns.cancel(turn.turn_id)
    await runner.look_for_cancel()
    await running
    assert (await turns.read(turn.turn_id)).status == "cancelled"


async def test_a_turn_that_is_cancelling_when_it_is_claimed_never_runs(
    turns: Turns, redis: Redis, runner: TurnRunner, held: Held
) -> None:
    turn = await claim(Claims(redis, LIFETIMES), await accept(turns))
    await turns.cancel(turn.turn_id)
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.rolled_back_messages, held.begun) == ("cancelled", 0, 0)


async def test_a_cancel_before_the_commit_undoes_the_turn(
    turns: Turns,
    runner: TurnRunner,
    held: Held,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = await accept(turns)

    async def cancel() -> None:
        await turns.cancel(turn.turn_id)
        runner.cancel(turn.turn_id)

    after(monkeypatch, memory, "drain", cancel)
    held.free.set()
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.rolled_back_messages) == ("cancelled", 2)
    assert await rows(saver) == UNTOUCHED


async def test_a_cancel_after_the_commit_is_too_late(
    turns: Turns,
    runner: TurnRunner,
    held: Held,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = await accept(turns)
    answers: list[str] = []

    async def cancel() -> None:
        answers.append((await turns.cancel(turn.turn_id)).turn.status)
        runner.cancel(turn.turn_id)

    after(monkeypatch, memory, "commit", cancel)
    held.free.set()
    await runner.run(turn.turn_id)
    assert answers == ["cancelling"]
    assert (await turns.read(turn.turn_id)).status == "done"
    assert (await turns.cancel(turn.turn_id)).ended_before
    assert await rows(saver) != UNTOUCHED


async def test_a_time_limit_is_no_cancel(
    turns: Turns,
    redis: Redis,
    held: Held,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agents = {"chat": graph_of(held.answer, saver)}
    settings = WorkerSettings(TURN_TIMEOUT_S=0.05)
    runner = TurnRunner(Claims(redis, LIFETIMES), memory, agents, settings)
    turn = await accept(turns)

    async def cancel() -> None:
        await turns.cancel(turn.turn_id)
        runner.cancel(turn.turn_id)

    after(monkeypatch, memory, "fence_of", cancel)
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert ended.error
    assert (ended.status, ended.error.code) == ("error", "timeout")
    assert await rows(saver) == UNTOUCHED


async def test_a_turn_that_ended_is_told_and_not_run_again_when_redis_forgot(
    turns: Turns, redis: Redis, valkey: RedisSeen, runner: TurnRunner, held: Held, memory: Memory
) -> None:
    held.free.set()
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
    assert await memory.untold() == []
