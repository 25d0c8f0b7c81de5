"""arq's worker, made to hold one slot."""

import pickle
from typing import Any

import pytest

from shared import keys
from shared.turns import Turns
from tests.redis_seen import RedisSeen, everlasting
from tests.slot import Runs, working
from tests.turns_made import accept
from tests.until import until
from worker import slot_worker


@pytest.fixture
def runs() -> Runs:
    return Runs()


async def accept_many(turns: Turns, count: int) -> list[str]:
    return [(await accept(turns)).turn_id for _ in range(count)]


async def test_turns_run_one_at_a_time_in_the_order_of_the_queue(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen
) -> None:
    early = await accept_many(turns, 20)
    async with working(redis_url, runs.run):
        await until(lambda: runs.begun)
        late = await accept_many(turns, 5)
        await until(lambda: len(runs.ended) == 25 and not valkey.exists(keys.queue()))
    assert runs.begun == runs.ended == early + late
    assert runs.most_at_once == 1


async def test_turns_run_by_the_order_of_their_scores_whatever_the_worker_s_clock_says(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen
) -> None:
    accepted = await accept_many(turns, 4)
    hour_ms = 3_600_000
    for turn_id, hours in zip(accepted, (3, 1, -1, 2), strict=True):
        valkey.zincrby(keys.queue(), hours * hour_ms, turn_id)
    async with working(redis_url, runs.run):
        await until(lambda: len(runs.ended) == 4, within_s=5)
    assert runs.begun == [accepted[place] for place in (2, 1, 3, 0)]


async def test_a_turn_that_runs_is_still_in_the_queue(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen
) -> None:
    runs.free.clear()
    first, second = await accept_many(turns, 2)
    async with working(redis_url, runs.run):
        await until(lambda: runs.begun)
        assert valkey.zrange(keys.queue(), 0, -1) == [first.encode(), second.encode()]
        runs.free.set()
        await until(lambda: runs.ended == [first, second])


async def test_nothing_of_arq_s_is_left_of_a_job(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen
) -> None:
    [turn_id] = await accept_many(turns, 1)
    async with working(redis_url, runs.run):
        await until(lambda: runs.ended and not valkey.exists(keys.job(turn_id)))
    assert list(valkey.scan_iter("arq:*")) == []
    assert everlasting(valkey) == {keys.turn(turn_id), keys.log(turn_id)} | {
        name.decode() for name in valkey.scan_iter("turnkeeper:thread:*")
    }


async def test_a_new_turn_wakes_the_worker(
    turns: Turns, redis_url: str, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_worker, "IDLE_S", 3600)
    async with working(redis_url, runs.run):
        for number in range(1, 4):
            await accept(turns)
            await until(lambda: len(runs.ended) == number)  # noqa: B023


async def test_a_wake_up_that_was_missed_is_made_up_for(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_worker, "IDLE_S", 0.02)
    async with working(redis_url, runs.run):
        await until(lambda: valkey.pubsub_numsub(keys.control())[0][1] == 1)
        deaf = valkey.client_list(_type="pubsub")
        with valkey.pipeline() as pipe:
            for client in deaf:
                pipe.client_kill_filter(_id=client["id"])
            pipe.execute()
        await accept(turns)
        await until(lambda: runs.ended)


async def test_a_function_that_fails_stops_nothing(
    turns: Turns, redis_url: str, runs: Runs
) -> None:
    first, second = await accept_many(turns, 2)

    async def run(turn_id: str) -> None:
        await runs.run(turn_id)
        if turn_id == first:
            raise RuntimeError("a fault of our own")

    async with working(redis_url, run):
        await until(lambda: runs.ended == [first, second])


async def test_a_pickle_in_place_of_a_job_is_not_opened(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen
) -> None:
    [turn_id] = await accept_many(turns, 1)
    valkey.set(keys.job(turn_id), pickle.dumps({"bomb": Bomb()}))
    async with working(redis_url, runs.run):
        await until(lambda: runs.ended)
    assert runs.begun == [turn_id]
    assert Bomb.gone_off is False


class Bomb:
    gone_off = False

    def __reduce__(self) -> tuple[Any, ...]:
        return setattr, (Bomb, "gone_off", True)


async def test_what_is_no_turn_is_taken_out_of_the_queue(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen
) -> None:
    valkey.zadd(keys.queue(), {b"\xff": 1})
    [turn_id] = await accept_many(turns, 1)
    async with working(redis_url, runs.run):
        await until(lambda: runs.ended)
        await until(lambda: not valkey.exists(keys.queue()))
    assert runs.begun == [turn_id]


@pytest.mark.parametrize("job", [b'{"t":null,"f":"run_turn","a":[],"k":{},"et":null}', None])
async def test_a_turn_whose_job_is_nonsense_or_gone_runs(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen, job: bytes | None
) -> None:
    [turn_id] = await accept_many(turns, 1)
    valkey.set(keys.job(turn_id), job) if job else valkey.delete(keys.job(turn_id))
    async with working(redis_url, runs.run):
        await until(lambda: runs.ended)
    assert runs.begun == [turn_id]


async def test_the_job_of_a_turn_that_has_just_ended_still_goes_away(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen
) -> None:
    runs.free.clear()
    [turn_id] = await accept_many(turns, 1)
    valkey.expire(keys.job(turn_id), 60)
    async with working(redis_url, runs.run):
        await until(lambda: runs.begun)
        assert valkey.ttl(keys.job(turn_id)) > 0
        runs.free.set()
        await until(lambda: runs.ended)
