"""A cancel ends a turn that has not started, and has the worker end one that has."""

import json

import pytest

from shared import chunks, keys, stream
from shared.chunks import Cancelled
from shared.claims import Claims
from shared.errors import UnknownTurn
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.redis_seen import RedisSeen, hearing, log_of, stored
from tests.turns_made import LIFETIMES, accept, claim, done, entry, start, text


def types_of(valkey: RedisSeen, turn: TurnRecord) -> list[str]:
    return [chunk["type"] for chunk in log_of(valkey, turn.turn_id)]


async def test_a_turn_that_waits_ends_at_once(
    turns: Turns, redis: Redis, valkey: RedisSeen
) -> None:
    turn = await accept(turns)
    ended, ended_before = await turns.cancel(turn.turn_id)
    assert ended == await turns.read(turn.turn_id)
    assert not ended_before
    assert (ended.status, ended.seq, ended.position) == ("cancelled", 2, None)
    assert (ended.started_at, ended.rolled_back_messages) == (None, 0)
    assert ended.finished_at is not None
    assert ended.finished_at >= ended.created_at
    _, last = [logged async for logged in stream.read(redis, turn.turn_id, 0)]
    _, chunk = chunks.parse(chunks.frame(last.seq, last.body))
    assert isinstance(chunk, Cancelled)
    assert 0 <= chunk.metadata.elapsed_s == chunk.metadata.queued_s < 10
    assert chunk.metadata.rolled_back_messages == 0
    assert valkey.zcard(keys.queue()) == 0
    assert 0 < valkey.ttl(keys.job(turn.turn_id)) <= 60


async def test_followers_hear_of_it(turns: Turns, valkey: RedisSeen) -> None:
    turn = await accept(turns)
    with hearing(valkey, keys.channel(turn.turn_id)) as heard:
        await turns.cancel(turn.turn_id)
        last = stream.parse_message(heard())
    assert (last.seq, last.type, last.terminal) == (2, "cancelled", True)
    [_, logged] = valkey.xrange(keys.log(turn.turn_id))
    assert last.body == logged[1][b"body"]


async def test_a_turn_that_never_started_is_listed_for_the_ledger(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    never = [await accept(turns) for _ in range(2)]
    started = await start(turns, claims)
    with hearing(valkey, keys.control()) as heard:
        for turn in (never[0], started, never[1], never[1]):
            await turns.cancel(turn.turn_id)
        told = [heard() for _ in range(3)]
    assert told == [b"unrecorded", b"cancel " + started.turn_id.encode(), b"unrecorded"]
    listed = [json.loads(raw) for raw in valkey.lrange(keys.unrecorded(), 0, -1)]
    assert [record["turn_id"] for record in listed] == [turn.turn_id for turn in never]
    for record in listed:
        as_stored = valkey.hgetall(keys.turn(record["turn_id"]))
        assert record == {name.decode(): value.decode() for name, value in as_stored.items()}


async def test_a_turn_that_runs_is_marked_and_its_worker_told(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    with hearing(valkey, keys.control()) as heard:
        cancellation = await turns.cancel(turn.turn_id)
        assert heard() == b"cancel " + turn.turn_id.encode()
    assert cancellation == (await turns.read(turn.turn_id), False)
    assert (cancellation.turn.status, cancellation.turn.position) == ("cancelling", 0)
    assert await claims.status(turn.turn_id) == "cancelling"
    assert types_of(valkey, turn) == ["queued"]
    assert await claims.publish(turn, entry(2, text(turn, "hi"))) == (2, True)


async def test_a_turn_that_is_queued_again_is_left_to_the_next_worker(
    turns: Turns, claims: Claims, redis: Redis
) -> None:
    turn = await start(turns, claims)
    await claims.requeue(turn, 2)
    assert not (await turns.cancel(turn.turn_id)).ended_before
    assert (await turns.read(turn.turn_id)).status == "cancelling"
    taken = await claim(Claims(redis, LIFETIMES), turn)
    assert (taken.status, taken.claim, taken.position) == ("cancelling", 2, 0)


async def test_a_turn_that_has_ended_stays_as_it_is(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await claims.finish(turn, turn.seq + 1, done(turn), None)
    before = stored(valkey)
    assert await turns.cancel(turn.turn_id) == (await turns.read(turn.turn_id), True)
    assert stored(valkey) == before


async def test_an_unknown_turn_cannot_be_cancelled(turns: Turns, valkey: RedisSeen) -> None:
    with pytest.raises(UnknownTurn, match="nobody"):
        await turns.cancel("nobody")
    assert valkey.dbsize() == 0


async def test_the_others_move_up(turns: Turns, claims: Claims) -> None:
    running = await start(turns, claims)
    waiting = [await accept(turns) for _ in range(3)]
    await turns.cancel(waiting[1].turn_id)
    queue = await turns.queue()
    assert queue.running == running
    assert [(turn.turn_id, turn.position) for turn in queue.waiting] == [
        (waiting[0].turn_id, 1),
        (waiting[2].turn_id, 2),
    ]
    for turn in queue.waiting:
        assert turn == await turns.read(turn.turn_id)
