"""A worker that is told to stop."""

import asyncio
from signal import SIGINT, SIGTERM

import pytest

from shared import keys
from shared.turns import Turns
from tests.redis_seen import RedisSeen
from tests.slot import Runs, working
from tests.turns_made import accept
from tests.until import until
from worker import slot_worker


@pytest.fixture
def runs() -> Runs:
    return Runs()


async def test_a_worker_told_to_stop_takes_no_more_turns_and_ends_its_own(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen
) -> None:
    runs.free.clear()
    first, second = [(await accept(turns)).turn_id for _ in range(2)]
    async with working(redis_url, runs.run, lambda: (runs.stop(), runs.free.set())[0]) as (
        worker,
        stopped,
    ):
        await until(lambda: runs.begun)
        worker.handle_sig_wait_for_completion(SIGTERM)
        await asyncio.wait_for(stopped, 30)
    assert (runs.begun, runs.ended, runs.cancelled) == ([first], [first], [])
    assert valkey.zrange(keys.queue(), 0, -1) == [second.encode()]


async def test_a_second_signal_does_not_interrupt_the_first(
    turns: Turns, redis_url: str, runs: Runs
) -> None:
    runs.free.clear()
    await accept(turns)
    async with working(redis_url, runs.run, runs.stop) as (worker, stopped):
        await until(lambda: runs.begun)
        for signal in (SIGTERM, SIGTERM, SIGINT):
            worker.handle_sig_wait_for_completion(signal)
        await asyncio.sleep(0)
        assert not stopped.done()
        runs.free.set()
        await asyncio.wait_for(stopped, 30)
    assert (runs.stops, runs.cancelled) == (1, [])
    assert runs.ended == runs.begun


async def test_a_function_that_does_not_end_is_cancelled_and_its_turn_kept(
    turns: Turns, redis_url: str, runs: Runs, valkey: RedisSeen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_worker, "GRACE_S", 0.05)
    runs.free.clear()
    turn_id = (await accept(turns)).turn_id
    async with working(redis_url, runs.run, runs.stop) as (worker, stopped):
        await until(lambda: runs.begun)
        worker.handle_sig_wait_for_completion(SIGTERM)
        await asyncio.wait_for(stopped, 30)
    assert (runs.cancelled, runs.stops) == ([turn_id], 1)
    assert valkey.zrange(keys.queue(), 0, -1) == [turn_id.encode()]
    assert valkey.exists(keys.job(turn_id))
