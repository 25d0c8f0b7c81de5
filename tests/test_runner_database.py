"""A turn ends, once, whatever its database does."""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]

from shared.claims import Claims
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import Rows, graph_of, rows
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES, accept
from worker import rollback
from worker.checkpoints import TurnSaver
from worker.errors import BrokenOff
from worker.memory import Memory
from worker.rollback import RestoreFailed
from worker.settings import WorkerSettings
from worker.turns import TurnRunner

UNTOUCHED: Rows = {"checkpoints": [], "writes": []}
LOWERED: Rows = {"open_turns": [], "fenced_checkpoints": [], "fenced_writes": []}


async def answer(_: MessagesState) -> dict[str, Any]:
    return {"messages": [("ai", "hi")]}


@pytest.fixture
def memory(saver: TurnSaver) -> Memory:
    return Memory(saver, {"chat": graph_of(answer, saver)}, kept_s=0)


@pytest.fixture
async def runner(redis: Redis, saver: TurnSaver, memory: Memory) -> TurnRunner:
    agents = {"chat": graph_of(answer, saver)}
    return TurnRunner(Claims(redis, LIFETIMES), memory, agents, WorkerSettings())


REFUSAL = sqlite3.OperationalError("disk I/O error")


async def refuse(*_: object) -> Any:
    raise REFUSAL


def refuse_once(
    monkeypatch: pytest.MonkeyPatch, memory: Memory, name: str, refusal: Exception = REFUSAL
) -> Callable[..., Awaitable[Any]]:
    """Has the database refuse the next time, and do as it did from then on."""
    whole = getattr(memory, name)

    async def do(*_: object) -> Any:
        monkeypatch.setattr(memory, name, whole)
        raise refusal

    monkeypatch.setattr(memory, name, do)
    return whole


@pytest.mark.parametrize("step", ["begin", "drain", "commit"])
async def test_what_cannot_be_saved_is_undone(
    turns: Turns,
    valkey: RedisSeen,
    runner: TurnRunner,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    refuse_once(monkeypatch, memory, step)
    turn = await accept(turns)
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert ended.error
    assert (ended.error.code, ended.error.message) == (
        "agent",
        "The database cannot be written to.",
    )
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)][-1] == "error"
    assert await rows(saver) == UNTOUCHED
    assert await rows(saver, *LOWERED) == LOWERED


async def test_a_turn_is_tried_again_while_the_database_cannot_be_read(
    turns: Turns, runner: TurnRunner, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_once(monkeypatch, memory, "end_of")
    turn = await accept(turns)
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.attempt, ended.claim) == ("done", 1, 1)


async def test_a_turn_waits_while_another_process_keeps_the_database(
    turns: Turns, runner: TurnRunner, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = sqlite3.OperationalError("database is locked")
    locked.sqlite_errorcode = sqlite3.SQLITE_BUSY
    refuse_once(monkeypatch, memory, "begin", locked)
    turn = await accept(turns)
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.attempt, ended.claim) == ("done", 1, 1)


async def test_a_worker_that_stops_meanwhile_has_not_crashed(
    turns: Turns, runner: TurnRunner, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(_: TurnRecord) -> None:
        runner.stop()
        raise REFUSAL

    monkeypatch.setattr(memory, "end_of", stop)
    turn = await accept(turns)
    with pytest.raises(BrokenOff):
        await runner.run(turn.turn_id)
    waits = await turns.read(turn.turn_id)
    assert (waits.status, waits.attempt, waits.position) == ("queued", 1, 0)


async def test_what_a_first_run_has_left_goes_before_the_second(
    turns: Turns,
    redis: Redis,
    runner: TurnRunner,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = await accept(turns)
    claimed = await Claims(redis, LIFETIMES).claim(turn.turn_id)
    assert claimed
    await memory.begin(claimed)  # and could not be restored when Redis forgot the claim
    memory.gate.close()
    await runner.run(turn.turn_id)
    assert (await turns.read(turn.turn_id)).status == "done"
    assert await rows(saver, *LOWERED) == LOWERED


async def test_a_first_run_that_cannot_be_undone_closes_the_thread(
    turns: Turns,
    redis: Redis,
    runner: TurnRunner,
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> None:
        raise RestoreFailed("it does not fit")

    turn = await accept(turns)
    claimed = await Claims(redis, LIFETIMES).claim(turn.turn_id)
    assert claimed
    await memory.begin(claimed)
    memory.gate.close()
    monkeypatch.setattr(rollback, "restore", fail)
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert ended.error
    assert ended.error.code == "rollback_failed"
    assert [fence.state for fence in await memory.fences()] == ["failed"]
