"""What the worker does to a turn: it takes, tells and ends it, unless another claim owns it."""

import tempfile
from pathlib import Path

import pytest

from shared import chunks, keys, stream
from shared.claims import Claims
from shared.errors import Fenced
from shared.redis import Redis, open_redis
from shared.turns import Turns
from tests.line import open_line
from tests.redis_seen import RedisSeen, hearing, log_of, stored
from tests.turns_made import (
    LIFETIMES,
    accept,
    claim,
    claimed_turn,
    done,
    entry,
    start,
    text,
)
from worker.insist import insist


async def test_a_claim_starts_the_turn(turns: Turns, claims: Claims, valkey: RedisSeen) -> None:
    waiting = await accept(turns)
    turn = await claim(claims, waiting)
    assert (turn.status, turn.attempt, turn.claim, turn.position) == ("running", 1, 1, 0)
    assert turn.run_id == turn.turn_id
    assert turn.started_at is not None
    assert turn.started_at >= turn.created_at
    assert turn == await turns.read(turn.turn_id)
    assert valkey.get(keys.running()) == turn.turn_id.encode()
    assert valkey.zcard(keys.queue()) == 1  # until it ends


async def test_a_turn_left_running_is_taken_as_a_new_attempt(turns: Turns, redis: Redis) -> None:
    waiting = await accept(turns)
    workers = [Claims(redis, LIFETIMES) for _ in range(3)]
    taken = [await claim(worker, waiting) for worker in workers]
    assert [turn.attempt for turn in taken] == [1, 2, 3]
    assert [turn.claim for turn in taken] == [1, 2, 3]
    assert {turn.started_at for turn in taken} == {taken[0].started_at}


async def test_a_worker_that_asks_again_gets_the_same(turns: Turns, claims: Claims) -> None:
    turn = await start(turns, claims)
    assert (await claim(claims, turn)).attempt == 1
    assert await claims.publish(turn, entry(2, text(turn, "hi"))) == (2, False)


async def test_a_claim_whose_answer_was_lost_is_no_attempt(turns: Turns, redis_url: str) -> None:
    waiting = await accept(turns)
    with tempfile.TemporaryDirectory(prefix="tk") as folder:
        async with open_line(redis_url, Path(folder)) as (line, url), open_redis(url) as redis:
            claims = Claims(redis, LIFETIMES)
            await claims.claim("nobody")  # the script is known from now on
            line.cut_after(waiting.turn_id.encode())
            turn = await insist(lambda: claims.claim(waiting.turn_id))
    assert line.cuts == 1
    assert turn is not None
    assert turn.attempt == 1


async def test_an_ended_or_unknown_turn_is_not_taken(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    ended = await start(turns, claims)
    await claims.finish(ended, ended.seq + 1, done(ended), None)
    never_started = await accept(turns)
    await turns.cancel(never_started.turn_id)
    before = stored(valkey)
    for turn_id in (ended.turn_id, never_started.turn_id, "nobody"):
        assert await claims.claim(turn_id) is None
    assert stored(valkey) == before


async def test_a_published_chunk_is_stored_and_told(
    turns: Turns, claims: Claims, valkey: RedisSeen, redis: Redis
) -> None:
    turn = await start(turns, claims)
    chunk = text(turn, "one\r two\u2028 \x00 \U0001f600")
    with hearing(valkey, keys.channel(turn.turn_id)) as heard:
        assert await claims.publish(turn, entry(2, chunk)) == (2, False)
        told = stream.parse_message(heard())
    [logged] = [logged async for logged in stream.read(redis, turn.turn_id, after=1)]
    assert logged == told == entry(2, chunk)
    assert chunks.parse(chunks.frame(2, logged.body)) == (2, chunk)
    assert (await turns.read(turn.turn_id)).seq == 2


async def test_whoever_tells_of_a_turn_hears_that_it_is_cancelled(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await claims.publish(turn, entry(2, text(turn, "a")))
    await turns.cancel(turn.turn_id)
    assert await claims.publish(turn, entry(3, text(turn, "b"))) == (3, True)
    assert await claims.publish(turn, entry(3, text(turn, "b"))) == (3, True)
    assert [chunk["content"] for chunk in log_of(valkey, turn.turn_id)] == ["", "a", "b"]


async def test_a_turn_that_is_cancelled_is_taken_to_be_undone(turns: Turns, redis: Redis) -> None:
    waiting = await accept(turns)
    first, second = [Claims(redis, LIFETIMES) for _ in range(2)]
    await claim(first, waiting)
    await turns.cancel(waiting.turn_id)
    for worker, number in ((first, 1), (second, 2)):
        turn = await claim(worker, waiting)
        # The second found that it held the slot still: the first had died with it.
        assert (turn.status, turn.attempt, turn.claim) == ("cancelling", number, number)


async def test_a_chunk_sent_again_is_stored_once(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    for seq, content in [(2, "a"), (2, "a"), (3, "b"), (2, "a"), (3, "b")]:
        await claims.publish(turn, entry(seq, text(turn, content)))
    told = [(chunk["id"], chunk["content"]) for chunk in log_of(valkey, turn.turn_id)]
    assert told == [("1-0", ""), ("2-0", "a"), ("3-0", "b")]


async def test_a_chunk_ahead_of_its_turn_is_not_taken(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    assert await claims.publish(turn, entry(4, text(turn, "early"))) == (1, False)
    assert await claims.finish(turn, 4, done(turn), None) == ("behind", 1)
    assert await turns.read(turn.turn_id) == turn
    assert len(log_of(valkey, turn.turn_id)) == 1


async def test_an_earlier_claim_may_write_no_more(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen
) -> None:
    old = await start(turns, claims)
    new = await claim(Claims(redis, LIFETIMES), old)
    before = stored(valkey)
    with pytest.raises(Fenced, match=f"Claim 1 of turn {old.turn_id}"):
        await claims.publish(old, entry(2, text(old, "late")))
    with pytest.raises(Fenced):
        await claims.finish(old, old.seq + 1, done(old), None)
    assert stored(valkey) == before
    assert await claims.publish(new, entry(2, text(new, "hi"))) == (2, False)
    await claims.finish(new, 3, done(new), None)
    with pytest.raises(Fenced):
        await claims.finish(old, old.seq + 1, done(old), None)


async def test_redis_says_when_it_has_forgotten_the_turn(claims: Claims, valkey: RedisSeen) -> None:
    turn = claimed_turn()
    assert await claims.publish(turn, entry(2, text(turn, "hi"))) == (None, False)
    assert await claims.finish(turn, 2, done(turn), None) == ("forgotten", 0)
    assert valkey.dbsize() == 0


async def test_redis_says_when_it_has_forgotten_the_claim(
    turns: Turns, valkey: RedisSeen, redis: Redis
) -> None:
    waiting = await accept(turns)
    await claim(Claims(redis, LIFETIMES), waiting)
    before = valkey.dump(keys.turn(waiting.turn_id))
    second = Claims(redis, LIFETIMES)
    turn = await claim(second, waiting)
    valkey.restore(keys.turn(waiting.turn_id), 0, before, replace=True)
    assert await second.publish(turn, entry(2, text(turn, "hi"))) == (None, False)
    assert await second.finish(turn, 2, done(turn), None) == ("forgotten", 0)
    assert valkey.dump(keys.turn(waiting.turn_id)) == before
