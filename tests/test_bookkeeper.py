"""A turn that was cancelled before it began is entered into the ledger all the same."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from shared import keys
from shared.lane import Lane
from shared.turns import Turns
from tests.memory import rows
from tests.redis_seen import RedisSeen
from tests.turns_made import accept
from tests.until import until
from worker import bookkeeper
from worker.bookkeeper import Bookkeeper
from worker.checkpoints import TurnSaver
from worker.memory import Memory


@pytest.fixture
async def book(lane: Lane, saver: TurnSaver) -> AsyncGenerator[Bookkeeper]:
    """A bookkeeper at work."""
    book = Bookkeeper(lane, Memory(saver, {}))
    keeping = asyncio.create_task(book.keep())
    yield book
    keeping.cancel()
    await asyncio.wait({keeping})
    assert keeping.cancelled()


async def until_entered(valkey: RedisSeen, book: Bookkeeper) -> None:
    book.wake()
    await until(lambda: not valkey.exists(keys.unrecorded()))


async def rename(saver: TurnSaver, table: str, name: str) -> None:
    """Not in the midst of a transaction of the bookkeeper's, with which it would be undone."""
    async with saver.gate.alone():
        await saver.conn.execute(f"ALTER TABLE {table} RENAME TO {name}")


async def test_it_is_entered(
    turns: Turns, saver: TurnSaver, valkey: RedisSeen, book: Bookkeeper
) -> None:
    waiting = [await accept(turns, retry_of="earlier") for _ in range(3)]
    for turn in waiting:
        await turns.cancel(turn.turn_id)
    assert valkey.llen(keys.unrecorded()) == 3
    await until_entered(valkey, book)
    entries = (await rows(saver, "ledger"))["ledger"]
    for entry, turn in zip(entries, sorted(waiting, key=lambda turn: turn.turn_id), strict=True):
        assert entry[:6] == (
            *(turn.turn_id, turn.thread_id, "chat", '{"text":"hi"}', "earlier", "cancelled"),
        )
    assert await rows(saver, "outbox") == {"outbox": []}, "Redis knows it already"


async def test_none_is_dropped_that_was_not_entered(
    turns: Turns, lane: Lane, valkey: RedisSeen
) -> None:
    for _ in range(2):
        await turns.cancel((await accept(turns)).turn_id)
    first = await lane.next_unrecorded()
    assert first
    for _ in range(2):  # the answer to the first was lost
        await lane.drop_unrecorded(first)
    assert valkey.llen(keys.unrecorded()) == 1


async def test_what_is_no_turn_is_passed_over(
    turns: Turns, saver: TurnSaver, valkey: RedisSeen, book: Bookkeeper
) -> None:
    for junk in ("no JSON", "{}", '{"turn_id": "a"}', "\xff"):
        valkey.rpush(keys.unrecorded(), junk)
    turn = await accept(turns)
    await turns.cancel(turn.turn_id)
    await until_entered(valkey, book)
    [entry] = (await rows(saver, "ledger"))["ledger"]
    assert entry[0] == turn.turn_id


async def test_a_database_that_refuses_is_asked_again(
    turns: Turns,
    saver: TurnSaver,
    valkey: RedisSeen,
    book: Bookkeeper,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(bookkeeper, "AGAIN_S", 0.001)
    turn = await accept(turns)
    await turns.cancel(turn.turn_id)
    await rename(saver, "ledger", "lost")
    book.wake()
    await until(lambda: "cannot be entered" in caplog.text)
    await rename(saver, "lost", "ledger")
    await until_entered(valkey, book)
    assert len((await rows(saver, "ledger"))["ledger"]) == 1
