"""What a worker finds in Redis that follows one that died."""

import pytest

from shared import keys
from shared.claims import Claims
from shared.errors import Fenced
from shared.lane import Lane
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.redis_seen import RedisSeen, everlasting, log_of, stored
from tests.turns_made import LIFETIMES, accept, claim, done, entry, start, text
from worker.checkpoints import TurnSaver
from worker.memory import Memory
from worker.recovery import Recovery


@pytest.fixture
def recovery(lane: Lane, redis: Redis, saver: TurnSaver) -> Recovery:
    """The next worker's."""
    return Recovery(lane, Claims(redis, LIFETIMES), Memory(saver, {}))


def pick_up(valkey: RedisSeen, turn: TurnRecord) -> None:
    """As arq does before it calls its function."""
    valkey.incr(keys.job_tries(turn.turn_id))
    valkey.expire(keys.job_tries(turn.turn_id), 88_400)


async def test_a_turn_left_running_waits_for_its_next_claim(
    turns: Turns, claims: Claims, redis: Redis, recovery: Recovery, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await claims.publish(turn, entry(2, text(turn, "half a sen")))
    behind = await accept(turns)
    before = await turns.read(turn.turn_id)
    await recovery.start()
    assert await turns.read(turn.turn_id) == before
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued", "text"]
    assert valkey.zrange(keys.queue(), 0, -1) == [each.turn_id.encode() for each in (turn, behind)]
    taken = await claim(Claims(redis, LIFETIMES), turn)
    assert (taken.status, taken.attempt, taken.claim) == ("running", 2, 2)
    assert [(run.run_id, run.from_seq) for run in taken.runs] == [
        (turn.turn_id, 2),
        (taken.run_id, 3),
    ]


async def test_it_is_found_although_its_place_and_its_job_are_gone(
    turns: Turns, claims: Claims, recovery: Recovery, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await accept(turns)
    # As by an arq that was cut off in the midst of its own end of the job.
    valkey.zrem(keys.queue(), turn.turn_id)
    valkey.delete(keys.job(turn.turn_id))
    await recovery.start()
    assert valkey.zrange(keys.queue(), 0, 0) == [turn.turn_id.encode()]
    assert valkey.exists(keys.job(turn.turn_id)) == 1


async def test_nothing_of_it_stays_for_ever(
    turns: Turns, claims: Claims, redis: Redis, recovery: Recovery, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims, idempotency_key="key", body_hash="hash")
    pick_up(valkey, turn)
    await recovery.start()
    taken = await claim(following := Claims(redis, LIFETIMES), turn)
    await following.finish(taken, 2, done(taken), None)
    assert everlasting(valkey) == {keys.known()}


@pytest.mark.parametrize("ended", [False, True])
async def test_nobody_holds_the_slot_who_is_over_or_unknown(
    turns: Turns, claims: Claims, recovery: Recovery, valkey: RedisSeen, ended: bool
) -> None:
    turn = await start(turns, claims)
    if ended:
        await claims.finish(turn, 2, done(turn), None)
    else:
        valkey.flushall()
    valkey.set(keys.running(), turn.turn_id)
    await recovery.start()
    assert valkey.exists(keys.running(), keys.queue()) == 0


async def test_whoever_ran_it_may_write_no_more_once_it_is_taken(
    turns: Turns, claims: Claims, redis: Redis, recovery: Recovery
) -> None:
    turn = await start(turns, claims)
    await recovery.start()
    await claim(Claims(redis, LIFETIMES), turn)
    with pytest.raises(Fenced):
        await claims.publish(turn, entry(2, text(turn, "late")))
    with pytest.raises(Fenced):
        await claims.requeue(turn, 2)
    with pytest.raises(Fenced):
        await claims.finish(turn, 2, done(turn), None)


async def test_turns_that_wait_keep_their_places(
    turns: Turns, recovery: Recovery, valkey: RedisSeen
) -> None:
    waiting = [await accept(turns) for _ in range(3)]
    for turn in waiting[:2]:
        pick_up(valkey, turn)
    await recovery.start()
    assert (await turns.queue()).waiting == waiting
    assert len(list(valkey.scan_iter("arq:job:*"))) == 3


async def test_there_may_be_nothing_to_do(recovery: Recovery, valkey: RedisSeen) -> None:
    await recovery.start()
    assert set(stored(valkey)) == {keys.known().encode()}


def without_jobs(valkey: RedisSeen) -> dict[bytes, bytes]:
    """What is stored, less what says when a job was put there."""
    found = stored(valkey).items()
    return {name: value for name, value in found if not name.startswith(b"arq:job:")}


async def test_it_may_be_done_again(
    turns: Turns, claims: Claims, recovery: Recovery, valkey: RedisSeen
) -> None:
    pick_up(valkey, await start(turns, claims))
    pick_up(valkey, await accept(turns))
    await recovery.start()
    before = without_jobs(valkey)
    await recovery.start()
    assert without_jobs(valkey) == before


async def test_a_turn_that_ended_just_before_is_left_as_it_is(
    turns: Turns, claims: Claims, recovery: Recovery
) -> None:
    turn = await start(turns, claims)
    await claims.finish(turn, 2, done(turn), None)
    ended = await turns.read(turn.turn_id)
    await recovery.start()
    assert await turns.read(turn.turn_id) == ended
