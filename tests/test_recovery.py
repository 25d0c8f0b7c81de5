"""What a worker finds that follows one that died."""

import pytest

from shared import keys
from shared.claims import Claims
from shared.errors import Fenced
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.redis_seen import RedisSeen, everlasting, log_of, stored
from tests.turns_made import LIFETIMES, accept, done, start, text
from worker.checkpoints import TurnSaver
from worker.failures import WORKER_LOST
from worker.memory import Memory
from worker.recovery import recover


def pick_up(valkey: RedisSeen, turn: TurnRecord) -> None:
    """As arq does before it calls its function."""
    valkey.incr(keys.job_tries(turn.turn_id))
    valkey.expire(keys.job_tries(turn.turn_id), 88_400)


async def test_a_turn_left_running_ends(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    pick_up(valkey, turn)
    await claims.publish(turn, entry(2, text(turn, "half a sen")))
    await recover(Claims(redis, LIFETIMES), Memory(saver, {}))
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.error, ended.attempt) == ("error", WORKER_LOST, 2)
    assert ended.position is None
    *before, terminal = log_of(valkey, turn.turn_id)
    assert [chunk["type"] for chunk in before] == ["queued", "text"]
    assert (terminal["id"], terminal["type"], terminal["completed"]) == ("3-0", "error", True)
    assert terminal["content"] == WORKER_LOST.message
    assert terminal["metadata"]["code"] == "worker_lost"
    assert terminal["metadata"]["elapsed_s"] >= terminal["metadata"]["queued_s"] >= 0
    assert valkey.exists(keys.running(), keys.queue()) == 0


async def test_nothing_of_a_turn_left_running_stays_for_ever(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver, valkey: RedisSeen
) -> None:
    pick_up(valkey, await start(turns, claims, idempotency_key="key", body_hash="hash"))
    await recover(Claims(redis, LIFETIMES), Memory(saver, {}))
    assert everlasting(valkey) == set()


async def test_whoever_ran_it_may_write_no_more(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver
) -> None:
    turn = await start(turns, claims)
    await recover(Claims(redis, LIFETIMES), Memory(saver, {}))
    with pytest.raises(Fenced):
        await claims.publish(turn, entry(2, text(turn, "late")))
    with pytest.raises(Fenced):
        await claims.finish(turn, turn.seq + 1, done(turn), None)


async def test_turns_that_wait_keep_their_places(
    turns: Turns, redis: Redis, saver: TurnSaver, valkey: RedisSeen
) -> None:
    waiting = [await accept(turns) for _ in range(3)]
    for turn in waiting[:2]:
        pick_up(valkey, turn)
    await recover(Claims(redis, LIFETIMES), Memory(saver, {}))
    assert (await turns.queue()).waiting == waiting
    assert len(list(valkey.scan_iter("arq:job:*"))) == 3


async def test_there_may_be_nothing_to_do(
    redis: Redis, saver: TurnSaver, valkey: RedisSeen
) -> None:
    await recover(Claims(redis, LIFETIMES), Memory(saver, {}))
    assert stored(valkey) == {}


async def test_it_may_be_done_again(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver, valkey: RedisSeen
) -> None:
    pick_up(valkey, await start(turns, claims))
    pick_up(valkey, await accept(turns))
    await recover(Claims(redis, LIFETIMES), Memory(saver, {}))
    before = stored(valkey)
    await recover(Claims(redis, LIFETIMES), Memory(saver, {}))
    assert stored(valkey) == before


async def test_a_turn_that_ended_just_before_is_left_as_it_is(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver
) -> None:
    turn = await start(turns, claims)
    await claims.finish(turn, turn.seq + 1, done(turn), None)
    ended = await turns.read(turn.turn_id)
    await recover(Claims(redis, LIFETIMES), Memory(saver, {}))
    assert await turns.read(turn.turn_id) == ended
