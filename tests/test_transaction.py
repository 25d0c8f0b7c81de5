"""A transaction is whole or nothing, whoever is cancelled, late or in the way."""

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from tests.memory import Rows, put, rows
from tests.turns_made import claimed_turn, done
from tests.until import until
from worker import transaction
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.fence import Fence
from worker.memory import Memory
from worker.transaction import Connection, transact

TURN = claimed_turn()
ENDING = Ending(turn=TURN, chunk=done(TURN))
UNTOUCHED: Rows = {"checkpoints": [], "writes": []}


@pytest.fixture
async def memory(saver: TurnSaver) -> Memory:
    """A memory in the middle of a turn."""
    memory = Memory(saver, {})
    await memory.begin(TURN)
    await put(saver)
    return memory


@pytest.fixture
async def fence(memory: Memory) -> Fence:
    """Of the turn."""
    fence = await memory.fence_of(TURN.thread_id)
    assert fence
    return fence


@pytest.fixture
def stranger(memory: Memory, tmp_path: Path) -> Generator[sqlite3.Connection]:
    """Another process' connection, which keeps all others from writing."""
    with closing(sqlite3.connect(tmp_path / "checkpoints.sqlite")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


async def test_an_insert_that_was_cut_off_is_taken_back(
    memory: Memory, saver: TurnSaver, fence: Fence
) -> None:
    # As a put leaves it that is cancelled after its INSERT and before its commit.
    await saver.conn.execute(
        "INSERT INTO writes (thread_id, checkpoint_id, task_id, idx, channel) "
        "VALUES ('another', 'c', 't', 0, 'messages')"
    )
    await memory.restore(fence, None)
    assert await rows(saver) == UNTOUCHED


@pytest.mark.parametrize("steps", range(1, 12))
async def test_it_is_whole_although_its_caller_is_cancelled(
    memory: Memory, saver: TurnSaver, fence: Fence, steps: int
) -> None:
    restoring = asyncio.create_task(memory.restore(fence, ENDING))
    for _ in range(steps):
        await asyncio.sleep(0)
    restoring.cancel()
    await asyncio.wait({restoring})
    assert await memory.fence_of("thread") is None
    assert await rows(saver) == UNTOUCHED
    assert await memory.end_of(TURN) == ENDING


async def test_a_put_that_does_not_land_is_not_waited_for_without_end(
    memory: Memory, saver: TurnSaver, fence: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "DRAIN_S", 0.01)
    async with saver.gate.alone():
        for attempt in (memory.drain(), memory.restore(fence, ENDING)):
            with pytest.raises(TimeoutError):
                await attempt
    assert await memory.fence_of("thread") == fence


async def test_nothing_stays_of_one_that_fails(saver: TurnSaver) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute("INSERT INTO outbox VALUES ('turn', '{}')")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await transact(saver, work)
    assert await rows(saver, "outbox") == {"outbox": []}


async def test_others_come_between_while_it_waits(
    memory: Memory,
    fence: Fence,
    stranger: sqlite3.Connection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction, "BUSY_S", 0.001)
    monkeypatch.setattr(transaction, "DRAIN_S", 30)
    restoring = asyncio.create_task(memory.restore(fence, ENDING))
    for _ in range(3):
        await until(lambda: "Another process" in caplog.text)
        assert await memory.fence_of("thread") == fence
        caplog.clear()
    assert not restoring.done()
    stranger.rollback()
    await restoring


async def test_it_waits_while_another_process_writes(
    memory: Memory,
    saver: TurnSaver,
    fence: Fence,
    stranger: sqlite3.Connection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction, "BUSY_S", 0.001)
    restoring = asyncio.create_task(memory.restore(fence, ENDING))
    await until(lambda: "Another process" in caplog.text)
    stranger.rollback()
    await restoring
    assert await rows(saver) == UNTOUCHED


async def test_it_does_not_wait_for_ever(
    memory: Memory,
    saver: TurnSaver,
    fence: Fence,
    stranger: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction, "LOCKED_S", 0.01)
    before = await rows(saver)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        await memory.restore(fence, ENDING)
    assert await memory.fence_of("thread") == fence, "which needs no leave to be read"
    assert await rows(saver) == before
