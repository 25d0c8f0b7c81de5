"""A Redis that has been emptied is told again of turns that have started, and of threads."""

from typing import get_args

import pytest
from msgspec.structs import replace

from shared import keys
from shared.claims import Claims, State
from shared.errors import AgentMismatch
from shared.lane import Lane, Mark
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.redis_seen import RedisSeen, everlasting, hearing, log_of, stored
from tests.turns_made import LIFETIMES, accept, claim, done, entry, new_turn, start, text

KEY = {"idempotency_key": "key", "body_hash": "hash"}
States = pytest.mark.parametrize("state", get_args(State))


async def started(turns: Turns, claims: Claims, valkey: RedisSeen) -> TurnRecord:
    """A turn of which Redis has forgotten everything."""
    turn = await start(turns, claims, agent="theirs", retry_of="earlier", **KEY)
    valkey.flushall()
    return turn


@States
async def test_it_knows_the_turn_again(
    turns: Turns, claims: Claims, valkey: RedisSeen, state: State
) -> None:
    turn = await started(turns, claims, valkey)
    assert await claims.revive(turn, state)
    assert await turns.read(turn.turn_id) == replace(
        turn,
        status="queued" if state == "queued" else "running",
        seq=1,
    )
    running = turn.turn_id.encode() if state == "running" else None
    assert valkey.get(keys.running()) == running
    assert valkey.zrange(keys.queue(), 0, -1) == [turn.turn_id.encode()]
    assert valkey.exists(keys.job(turn.turn_id))
    assert valkey.hgetall(keys.thread(turn.thread_id)) == {b"agent": b"theirs", b"live": b"1"}
    [first] = log_of(valkey, turn.turn_id)
    assert (first["id"], first["type"], first["metadata"]["position"]) == ("1-0", "queued", 0)
    assert everlasting(valkey) == {name.decode() for name in valkey.scan_iter()}


async def test_followers_hear_its_first_chunk(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await started(turns, claims, valkey)
    with hearing(valkey, keys.channel(turn.turn_id)) as heard:
        await claims.revive(turn, "running")
        assert heard().startswith(b"1 queued {")


async def test_its_thread_and_its_key_are_taken_again(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await started(turns, claims, valkey)
    await claims.revive(turn, "queued")
    with pytest.raises(AgentMismatch):
        await accept(turns, thread_id=turn.thread_id, agent="another")
    again = await turns.admit(new_turn(**KEY), limit=10, default_agent="chat")
    assert (again.turn_id, again.repeated) == (turn.turn_id, True)


async def test_its_place_is_before_what_came_after_it(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await started(turns, claims, valkey)
    behind = await accept(turns)
    await claims.revive(turn, "queued")
    order = [each.turn_id for each in (turn, behind)]
    assert [each.turn_id for each in (await turns.queue()).waiting] == order


@States
async def test_the_same_claim_goes_on_unless_it_waits(
    turns: Turns, claims: Claims, valkey: RedisSeen, state: State
) -> None:
    turn = await started(turns, claims, valkey)
    await claims.revive(turn, state)
    if state != "queued":
        assert await claims.publish(turn, entry(2, text(turn, "hi"))) == (2, False)
        assert await claims.finish(turn, 3, done(turn), None) == ("ended", 3)
        assert everlasting(valkey) == set()
    else:
        taken = await claim(claims, turn)
        assert (taken.claim, taken.attempt) == (turn.claim + 1, turn.attempt)


@States
async def test_a_turn_that_is_known_stays_as_it_is(
    turns: Turns, claims: Claims, valkey: RedisSeen, state: State
) -> None:
    turn = await start(turns, claims, **KEY)
    await claims.publish(turn, entry(2, text(turn, "hi")))
    before = stored(valkey)
    assert not await claims.revive(turn, state)
    await claims.finish(turn, 3, done(turn), None)
    assert stored(valkey) != before
    before = stored(valkey)
    assert not await claims.revive(turn, state)
    assert not await claims.revive(replace(turn, claim=7), state)
    assert stored(valkey) == before


@pytest.mark.parametrize("cancelling", [False, True])
async def test_of_an_older_claim_the_chunks_and_a_cancel_stand(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen, cancelling: bool
) -> None:
    turn = await start(turns, claims, **KEY)
    await claims.publish(turn, entry(2, text(turn, "hi")))
    if cancelling:
        await turns.cancel(turn.turn_id)
    key, older = keys.turn(turn.turn_id), valkey.dump(keys.turn(turn.turn_id))
    newer = await claim(others := Claims(redis, LIFETIMES), turn)
    valkey.restore(key, 0, older, replace=True)
    valkey.delete(keys.running())
    assert (await others.publish(newer, entry(3, text(newer, "ho")))).last is None
    assert await others.revive(newer, "running")
    status = "cancelling" if cancelling else "running"
    assert await turns.read(turn.turn_id) == replace(newer, status=status)
    assert await others.publish(newer, entry(3, text(newer, "ho"))) == (3, cancelling)
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued", "text", "text"]
    assert valkey.hget(keys.thread(turn.thread_id), "live") == b"1"


async def test_a_turn_gets_its_place_and_its_job_back(
    turns: Turns, claims: Claims, lane: Lane, valkey: RedisSeen
) -> None:
    turn, behind = await start(turns, claims), await accept(turns)
    valkey.delete(keys.job(turn.turn_id))
    valkey.zrem(keys.queue(), turn.turn_id)
    await lane.put_back(turn.turn_id)
    assert valkey.zrange(keys.queue(), 0, -1) == [each.turn_id.encode() for each in (turn, behind)]
    assert valkey.exists(keys.job(turn.turn_id))
    assert valkey.get(keys.running()) == turn.turn_id.encode()
    valkey.zincrby(keys.queue(), 1, behind.turn_id)  # as one of many that came at once
    order = valkey.zrange(keys.queue(), 0, -1, withscores=True)
    await lane.put_back(behind.turn_id)
    assert valkey.zrange(keys.queue(), 0, -1, withscores=True) == order


async def test_a_turn_that_has_ended_gets_no_place(
    turns: Turns, claims: Claims, lane: Lane, valkey: RedisSeen
) -> None:
    turn, running = await start(turns, claims), await start(turns, claims)
    await claims.finish(turn, 2, done(turn), None)
    before = stored(valkey)
    for turn_id in (turn.turn_id, "nobody"):
        await lane.put_back(turn_id)
        assert stored(valkey) == before
    assert valkey.get(keys.running()) == running.turn_id.encode()
    for turn_id in (turn.turn_id, "nobody"):
        valkey.set(keys.running(), turn_id)
        await lane.put_back(turn_id)
        assert not valkey.exists(keys.running())


async def test_threads_keep_their_agents(
    turns: Turns, claims: Claims, lane: Lane, valkey: RedisSeen
) -> None:
    live = await start(turns, claims, thread_id="live", agent="theirs")
    await lane.remember_agents({"idle": "other", "live": "other"})
    assert await turns.thread_agent("idle") == "other"
    assert await turns.thread_agent("live") == live.agent == "theirs"
    assert 0 < valkey.ttl(keys.thread("idle")) <= LIFETIMES.turn_s
    valkey.hdel(keys.thread("live"), "agent")
    await lane.remember_agents({"live": "theirs"})
    assert await turns.thread_agent("live") == "theirs"
    assert valkey.ttl(keys.thread("live")) == -1
    await accept(turns, thread_id="idle")
    await lane.remember_agents({"idle": "other"})
    assert valkey.ttl(keys.thread("idle")) == -1


async def test_it_is_seen_when_redis_has_been_emptied(lane: Lane, valkey: RedisSeen) -> None:
    assert await lane.read_mark() is None
    mark = await lane.begin_telling()
    assert await lane.read_mark() == Mark(mark, told=False)
    assert await lane.end_telling(mark)
    assert await lane.read_mark() == Mark(mark, told=True)
    valkey.flushall()
    assert await lane.read_mark() is None


async def test_a_redis_keeps_its_mark_until_it_may_have_lost_something(
    lane: Lane, valkey: RedisSeen
) -> None:
    first = await lane.begin_telling()
    assert await lane.begin_telling() == first, "the worker was started again"
    valkey.flushall()
    assert not await lane.end_telling(first)
    second = await lane.begin_telling()
    assert second != first
    # As after a start of Redis, with what it had kept.
    valkey.set(keys.known(), "another-process-mark told")
    assert await lane.read_mark() is None
    assert await lane.begin_telling() not in (first, second)


async def test_a_turn_that_only_ends_does_not_take_the_slot(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    ending = await started(turns, claims, valkey)
    running = await start(turns, claims)
    assert await claims.revive(ending, "ending")
    assert (await turns.read(ending.turn_id)).status == "running"
    assert valkey.get(keys.running()) == running.turn_id.encode()
    await claims.finish(ending, 2, done(ending), None)
    assert valkey.get(keys.running()) == running.turn_id.encode()
