"""How a turn ends: once, with its terminal chunk."""

import asyncio

import pytest

from shared import keys
from shared.chunks import type_of
from shared.claims import Claims
from shared.errors import Fenced
from shared.turns import Turns
from tests.redis_seen import RedisSeen, log_of, stored
from tests.turns_made import (
    FAILURE,
    done,
    entry,
    failed,
    start,
    text,
    undone,
)


async def test_a_turn_ends_with_its_terminal_chunk(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await claims.publish(turn, entry(2, text(turn, "hi")))
    assert await claims.finish(turn, 3, done(turn), None) == ("ended", 3)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.seq, ended.position, ended.error) == ("done", 3, None, None)
    assert ended.usage == done(turn).metadata.usage
    assert ended.finished_at is not None
    assert ended.finished_at >= (ended.started_at or 0)
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued", "text", "done"]
    assert valkey.get(keys.running()) is None
    assert valkey.zcard(keys.queue()) == 0


async def test_a_failed_turn_says_why(turns: Turns, claims: Claims) -> None:
    turn = await start(turns, claims)
    await claims.finish(turn, turn.seq + 1, failed(turn), FAILURE)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.error, ended.rolled_back_messages) == ("error", FAILURE, 2)


async def test_a_cancelled_turn_ends_as_it_did(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    for chunk, failure in ((undone, None), (done, None), (failed, FAILURE)):
        turn = await start(turns, claims)
        await turns.cancel(turn.turn_id)
        for _ in range(2):
            await claims.finish(turn, turn.seq + 1, chunk(turn), failure)
        ended = await turns.read(turn.turn_id)
        last = chunk(turn)
        assert (ended.status, ended.error) == (type_of(last), failure)
        assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued", ended.status]
        assert await turns.cancel(turn.turn_id) == (ended, True)


async def test_how_much_was_rolled_back_is_kept(turns: Turns, claims: Claims) -> None:
    turn = await start(turns, claims)
    await turns.cancel(turn.turn_id)
    await claims.finish(turn, turn.seq + 1, undone(turn), None)
    assert (await turns.read(turn.turn_id)).rolled_back_messages == 3


async def test_the_end_is_written_once_however_often_it_is_said(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    told = await asyncio.gather(*(claims.finish(turn, 2, done(turn), None) for _ in range(10)))
    assert set(told) == {("ended", 2)}
    before = stored(valkey)
    await claims.finish(turn, 2, done(turn), None)
    assert stored(valkey) == before
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued", "done"]


async def test_the_end_of_one_turn_leaves_another_running(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    first, second = await start(turns, claims), await start(turns, claims)
    await claims.finish(first, first.seq + 1, done(first), None)
    assert valkey.get(keys.running()) == second.turn_id.encode()


async def test_nobody_writes_after_the_end(turns: Turns, claims: Claims, valkey: RedisSeen) -> None:
    turn = await start(turns, claims)
    await claims.finish(turn, turn.seq + 1, done(turn), None)
    before = stored(valkey)
    with pytest.raises(Fenced):
        await claims.publish(turn, entry(3, text(turn, "late")))
    with pytest.raises(Fenced):
        await claims.finish(turn, turn.seq + 1, failed(turn), FAILURE)
    assert stored(valkey) == before
