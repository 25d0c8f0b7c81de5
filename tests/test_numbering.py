"""No number is told that the database has not heard of before."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from shared.claims import Claims
from shared.turns import Turns
from tests.memory import rows
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import claimed_turn, done, entry, queued, start, text
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.fence import Fence
from worker.memory import Memory
from worker.numbering import AHEAD, Numbering
from worker.publisher import open_publisher

TURN = claimed_turn()


@pytest.fixture
def memory(saver: TurnSaver) -> Memory:
    return Memory(saver, {})


async def test_a_turn_begins_with_some(memory: Memory) -> None:
    assert await memory.numbering_of(TURN) is None
    begun = await memory.begin(TURN, "mark")
    assert begun.bound == TURN.seq + AHEAD
    assert await memory.numbering_of(TURN) == Numbering(begun.bound, "mark")


async def test_more_are_reserved_before_they_are_told(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    told_by_then: list[int] = []

    async def reserve(seq: int) -> int:
        told_by_then.append(len(log_of(valkey, turn.turn_id)))
        return seq + 1

    async with open_publisher(claims, turn, [entry(1, queued(turn))], lambda: None) as publisher:
        publisher.limit(2, reserve)
        for number in range(5):
            publisher.put(text(turn, "hi", message_id=f"{number}"))
    assert told_by_then == [2, 4]
    assert len(log_of(valkey, turn.turn_id)) == 6


async def test_what_is_reserved_is_noted(memory: Memory) -> None:
    begun = await memory.begin(TURN, "mark")
    higher = await memory.reserve(TURN, begun.bound + 1, "another")
    assert higher == begun.bound + 1 + AHEAD
    assert await memory.numbering_of(TURN) == Numbering(higher, "another")
    await memory.let_go(TURN, 7)
    assert await memory.numbering_of(TURN) == Numbering(7, "another")


async def test_a_mark_stays_until_a_redis_has_been_told_all(memory: Memory) -> None:
    await memory.begin(TURN, "mark")
    memory.gate.close()
    await memory.begin(TURN, None)
    numbering = await memory.numbering_of(TURN)
    assert numbering
    assert numbering.mark == "mark"


async def test_another_process_that_writes_holds_nobody_up(memory: Memory, tmp_path: Path) -> None:
    await memory.begin(TURN)
    with sqlite3.connect(tmp_path / "checkpoints.sqlite", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            await asyncio.wait_for(memory.reserve(TURN, 200, "mark"), 30)
        other.execute("ROLLBACK")
    other.close()


async def test_nothing_is_left_of_a_turn_that_has_ended(memory: Memory, saver: TurnSaver) -> None:
    await memory.begin(TURN)
    memory.gate.close()
    await memory.commit(Ending(turn=TURN, chunk=done(TURN)))
    await memory.reserve(TURN, 200, "mark")  # its last chunks are still being told
    assert await rows(saver, "numbering") == {"numbering": []}


async def test_nor_of_one_whose_thread_is_restored_later(memory: Memory, saver: TurnSaver) -> None:
    await memory.begin(TURN)
    fence = await memory.fence_of(TURN.thread_id)
    assert isinstance(fence, Fence)
    await memory.lift(fence)
    assert await rows(saver, "numbering") == {"numbering": []}
