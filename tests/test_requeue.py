"""A worker that stops lets go of its turn: it waits again, in its old place."""

import asyncio

import pytest

from shared import keys, stream
from shared.claims import Claims
from shared.errors import Fenced
from shared.redis import Redis
from shared.turns import Turns
from tests.redis_seen import RedisSeen, hearing, log_of, stored
from tests.turns_made import LIFETIMES, accept, claim, claimed_turn, done, entry, start, text


async def test_it_waits_in_its_old_place(turns: Turns, claims: Claims, valkey: RedisSeen) -> None:
    turn = await start(turns, claims)
    behind = await accept(turns)
    await claims.publish(turn, entry(2, text(turn, "hi")))
    assert await claims.requeue(turn, 3) == ("queued", 3)
    waiting = await turns.read(turn.turn_id)
    assert (waiting.status, waiting.position, waiting.seq, waiting.claim) == ("queued", 0, 3, 1)
    assert [each.turn_id for each in (await turns.queue()).waiting] == [
        turn.turn_id,
        behind.turn_id,
    ]
    assert not valkey.exists(keys.running())
    last = log_of(valkey, turn.turn_id)[-1]
    assert (last["id"], last["type"], last["metadata"]["position"]) == ("3-0", "queued", 0)


async def test_followers_hear_of_it(turns: Turns, claims: Claims, valkey: RedisSeen) -> None:
    turn = await start(turns, claims)
    with hearing(valkey, keys.channel(turn.turn_id)) as heard:
        await claims.requeue(turn, 2)
        told = stream.parse_message(heard())
    [_, (_, logged)] = valkey.xrange(keys.log(turn.turn_id))
    assert (told.seq, told.type, told.body) == (2, "queued", logged[b"body"])


async def test_its_place_is_told_as_it_is(turns: Turns, claims: Claims, valkey: RedisSeen) -> None:
    # One that was taken before its time, as after a Redis that came back without its last second.
    await accept(turns)
    turn = await start(turns, claims)
    await claims.requeue(turn, 2)
    assert log_of(valkey, turn.turn_id)[-1]["metadata"]["position"] == 1
    assert (await turns.read(turn.turn_id)).position == 1


async def test_whoever_takes_it_then_counts_no_crash_and_adds_up_the_time(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    # It has been running for a minute.
    valkey.hincrby(keys.turn(turn.turn_id), "claimed_at", -60_000)
    await claims.requeue(turn, 2)
    taken = await claim(Claims(redis, LIFETIMES), turn)
    assert (taken.status, taken.attempt, taken.claim) == ("running", 1, 2)
    assert taken.started_at == turn.started_at
    assert 60_000 <= taken.ran_ms < 65_000
    assert [(run.run_id, run.from_seq) for run in taken.runs] == [
        (turn.turn_id, 2),
        (taken.run_id, 3),
    ]
    assert taken.run_id != turn.turn_id


@pytest.mark.parametrize("spoke", [False, True])
async def test_of_a_worker_that_died_the_time_counts_until_its_last_word(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen, spoke: bool
) -> None:
    turn = await start(turns, claims)
    for moment in ("claimed_at", "told_at"):
        valkey.hincrby(keys.turn(turn.turn_id), moment, -60_000)
    if spoke:
        await claims.publish(turn, entry(2, text(turn, "hi")))
    taken = await claim(Claims(redis, LIFETIMES), turn)
    assert taken.attempt == 2
    assert (60_000 if spoke else 0) <= taken.ran_ms < (65_000 if spoke else 1)


async def test_said_again_it_changes_nothing(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await claims.requeue(turn, 2)
    before = stored(valkey)
    assert await claims.requeue(turn, 2) == ("queued", 2)
    assert stored(valkey) == before


async def test_one_that_is_to_be_cancelled_is_not_let_go(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await turns.cancel(turn.turn_id)
    before = stored(valkey)
    assert await claims.requeue(turn, 2) == ("cancelling", 1)
    assert stored(valkey) == before


@pytest.mark.parametrize("seq", [1, 3])
async def test_chunks_before_it_must_not_be_missing(
    turns: Turns, claims: Claims, valkey: RedisSeen, seq: int
) -> None:
    turn = await start(turns, claims)
    before = stored(valkey)
    assert await claims.requeue(turn, seq) == ("behind", 1)
    assert stored(valkey) == before


async def test_redis_may_have_forgotten_it(claims: Claims, valkey: RedisSeen) -> None:
    assert await claims.requeue(claimed_turn(), 2) == ("forgotten", 0)
    assert valkey.dbsize() == 0


async def test_only_its_last_claim_may(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    others = Claims(redis, LIFETIMES)
    theirs = await claim(others, turn)
    before = stored(valkey)
    with pytest.raises(Fenced):
        await claims.requeue(turn, 2)
    assert stored(valkey) == before
    await others.finish(theirs, 2, done(turn), None)
    with pytest.raises(Fenced):
        await others.requeue(theirs, 3)


async def test_nothing_is_told_of_a_turn_that_waits(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await claims.requeue(turn, 2)
    before = stored(valkey)
    with pytest.raises(Fenced):
        await claims.publish(turn, entry(3, text(turn, "late")))
    with pytest.raises(Fenced):
        await claims.finish(turn, 3, done(turn), None)
    assert stored(valkey) == before


async def test_a_cancel_at_once_has_it_undone(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen
) -> None:
    for _ in range(20):
        turn = await start(turns, claims)
        told, cancellation = await asyncio.gather(
            claims.requeue(turn, 2), turns.cancel(turn.turn_id)
        )
        assert cancellation.turn.status == "cancelling"
        assert (await turns.read(turn.turn_id)).status == "cancelling"
        # Let go first, it waits for the next worker; else it stays with this one.
        assert valkey.exists(keys.running()) == (told.state == "cancelling")
        taken = await claim(Claims(redis, LIFETIMES), turn)
        assert taken.status == "cancelling"
