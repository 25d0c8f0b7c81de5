"""The slot worker while Redis goes away, comes back, or is lost at the worst moment."""

import asyncio
import logging
import tempfile
from collections.abc import Generator
from pathlib import Path
from signal import SIGTERM

import pytest

from shared import keys
from shared.redis import Redis, open_redis
from shared.turns import Turns
from tests.line import open_line
from tests.redis_seen import RedisSeen
from tests.slot import Runs, working
from tests.turns_made import LIFETIMES, accept
from tests.until import until
from tests.valkey import run_valkey, valkey_url
from worker import slot_worker


@pytest.fixture
def folder() -> Generator[Path]:
    """Short: the path of a socket has a limit."""
    with tempfile.TemporaryDirectory(prefix="tk") as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(slot_worker, "RETRY_S", 0.01)
    monkeypatch.setattr(slot_worker, "IDLE_S", 0.05)
    monkeypatch.setattr(slot_worker, "GRACE_S", 0.3)


@pytest.fixture
def runs() -> Runs:
    return Runs()


async def work(url: str, runs: Runs, count: int) -> None:
    """Works until so many turns have run."""
    async with working(url, runs.run):
        await until(lambda: len(runs.ended) == count)


async def test_a_worker_may_begin_before_redis(folder: Path, runs: Runs) -> None:
    url = valkey_url(folder)
    at_work = asyncio.create_task(work(url, runs, count=1))
    await asyncio.sleep(0)
    async with run_valkey(folder), open_redis(url) as redis:
        await accept(Turns(redis, LIFETIMES))
        await asyncio.wait_for(at_work, 30)


async def test_a_worker_at_rest_outlives_redis(
    folder: Path, runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "worker.slot_worker")
    url = valkey_url(folder)
    async with open_redis(url) as redis:
        async with run_valkey(folder):
            at_work = asyncio.create_task(work(url, runs, count=2))
            await accept(Turns(redis, LIFETIMES))
            await until(lambda: len(runs.ended) == 1)
        await until(lambda: "Redis is away" in caplog.text)
        async with run_valkey(folder):
            await until(lambda: "Redis is back." in caplog.text)
            await accept(Turns(redis, LIFETIMES))
            await asyncio.wait_for(at_work, 30)
    assert len(runs.ended) == 2


async def test_that_redis_is_away_and_back_is_said_once_each(
    folder: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(slot_worker, "IDLE_S", 0.005)
    caplog.set_level(logging.INFO, "worker.slot_worker")
    runs.free.clear()
    async with open_redis(valkey_url(folder)) as redis:
        async with run_valkey(folder) as url:
            at_work = asyncio.create_task(work(url, runs, count=2))
            await accept(Turns(redis, LIFETIMES))
            await until(lambda: runs.begun)
        runs.free.set()
        await until(lambda: caplog.records)
        async with run_valkey(folder):
            await accept(Turns(redis, LIFETIMES))
            await asyncio.wait_for(at_work, 30)
    told = [record.message.partition(":")[0] for record in caplog.records]
    assert told == ["Redis is away", "Redis is back.", "Stopping on SIGTERM."]


async def test_a_turn_outlives_redis_and_runs_once(folder: Path, runs: Runs) -> None:
    url = valkey_url(folder)
    runs.free.clear()
    async with open_redis(url) as redis:
        turns = Turns(redis, LIFETIMES)
        async with run_valkey(folder):
            at_work = asyncio.create_task(work(url, runs, count=2))
            first = await accept(turns)
            await until(lambda: runs.begun)
        runs.free.set()
        await until(lambda: runs.ended)
        async with run_valkey(folder):
            second = await accept(turns)
            await asyncio.wait_for(at_work, 30)
            assert (await turns.queue()).waiting == []
    assert runs.ended == runs.begun == [first.turn_id, second.turn_id]


@pytest.mark.parametrize("busy", [False, True])
async def test_a_worker_stops_in_order_while_redis_is_away(
    folder: Path, runs: Runs, busy: bool
) -> None:
    url = valkey_url(folder)
    runs.free.clear()
    begun, stop = asyncio.Event(), asyncio.Event()

    async def work_until_stopped() -> None:
        async with working(url, runs.run) as (worker, stopped):
            await until(lambda: runs.begun)
            if not busy:
                runs.free.set()
                await until(lambda: not worker.tasks)
            begun.set()
            await stop.wait()
            worker.handle_sig_wait_for_completion(SIGTERM)
            await asyncio.wait_for(asyncio.shield(stopped), 30)

    async with open_redis(url) as redis, run_valkey(folder):
        await accept(Turns(redis, LIFETIMES))
        at_work = asyncio.create_task(work_until_stopped())
        await begun.wait()
    stop.set()
    await asyncio.wait_for(at_work, 30)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(b"ZRANGE\r\n", id="while it looks for turns"),
        pytest.param(b"INCRBY", id="after it has asked for the job"),
        pytest.param(b"ZREM\r\n$9\r\narq:abort", id="when the turn is over"),
    ],
)
async def test_a_line_that_breaks_while_a_turn_is_picked_up_loses_no_turn(
    redis: Redis, redis_url: str, valkey: RedisSeen, folder: Path, runs: Runs, command: bytes
) -> None:
    turns = Turns(redis, LIFETIMES)
    async with open_line(redis_url, folder) as (line, url), working(url, runs.run):
        await until(lambda: valkey.pubsub_numsub(keys.control())[0][1] == 1)
        line.cut_after(command)
        first, second = await accept(turns), await accept(turns)
        await until(lambda: line.cuts == 1)
        await until(lambda: len(runs.ended) == 2)
        await until(lambda: not valkey.exists(keys.queue()))
    assert runs.ended == runs.begun == [first.turn_id, second.turn_id]
