"""The worker stops in the middle of a turn: it waits, and the next worker goes on with it."""

import sqlite3

import pytest

from shared.redis import Redis
from shared.turns import Turns
from tests.memory import Rows, graph_of, rows
from tests.redis_seen import RedisSeen, log_of
from tests.runners import Held, RunnerOf, after, begin, runners, say_hi
from tests.turns_made import accept
from worker.checkpoints import TurnSaver
from worker.errors import BrokenOff
from worker.memory import Memory

UNTOUCHED: Rows = {"checkpoints": [], "writes": []}


@pytest.fixture
def runner_of(redis: Redis, saver: TurnSaver) -> RunnerOf:
    return runners(redis, saver)


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def memory(saver: TurnSaver, held: Held) -> Memory:
    return Memory(saver, {"chat": graph_of(held.answer, saver)})


def types(valkey: RedisSeen, turn_id: str) -> list[str]:
    return [chunk["type"] for chunk in log_of(valkey, turn_id)]


async def test_a_running_turn_waits_again_and_the_next_worker_goes_on_with_it(
    turns: Turns, runner_of: RunnerOf, held: Held, valkey: RedisSeen
) -> None:
    running = await begin(runner := runner_of(held.answer), turn := await accept(turns), held)
    runner.stop()
    with pytest.raises(BrokenOff):
        await running
    waiting = await turns.read(turn.turn_id)
    assert (waiting.status, waiting.position, waiting.attempt) == ("queued", 0, 1)
    assert types(valkey, turn.turn_id) == ["queued", "queued"]
    await runner_of(say_hi).run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.attempt, ended.claim) == ("done", 1, 2)
    assert types(valkey, turn.turn_id) == ["queued", "queued", "text", "done"]


async def test_a_turn_that_is_taken_while_the_worker_stops_never_begins(
    turns: Turns, runner_of: RunnerOf, held: Held, saver: TurnSaver
) -> None:
    runner, turn = runner_of(held.answer), await accept(turns)
    runner.stop()
    with pytest.raises(BrokenOff):
        await runner.run(turn.turn_id)
    assert (await turns.read(turn.turn_id)).status == "queued"
    assert held.begun == 0
    assert await rows(saver, "open_turns") == {"open_turns": []}


async def test_a_cancel_that_comes_before_it_waits_again_undoes_it(
    turns: Turns,
    runner_of: RunnerOf,
    held: Held,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner, turn = runner_of(held.answer, memory=memory), await accept(turns)
    after(monkeypatch, memory, "standing", lambda: turns.cancel(turn.turn_id))
    running = await begin(runner, turn, held)
    runner.stop()
    await running
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.rolled_back_messages) == ("cancelled", 1)
    assert await rows(saver) == UNTOUCHED


async def test_a_turn_that_is_being_committed_ends(
    turns: Turns,
    runner_of: RunnerOf,
    held: Held,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner, turn = runner_of(held.answer, memory=memory), await accept(turns)

    async def stop() -> None:
        runner.stop()

    after(monkeypatch, memory, "drain", stop)
    held.free.set()
    await runner.run(turn.turn_id)
    assert (await turns.read(turn.turn_id)).status == "done"
    assert await rows(saver) != UNTOUCHED
    assert await rows(saver, "open_turns") == {"open_turns": []}


async def test_it_waits_again_although_the_database_does_not_say_what_stands(
    turns: Turns,
    runner_of: RunnerOf,
    held: Held,
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    runner, turn = runner_of(held.answer, memory=memory), await accept(turns)
    monkeypatch.setattr(memory, "standing", refuse)
    running = await begin(runner, turn, held)
    runner.stop()
    with pytest.raises(BrokenOff):
        await running
    assert (await turns.read(turn.turn_id)).status == "queued"
