"""The slot worker while Redis goes away, comes back, or is lost at the worst moment."""

import asyncio
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


async def test_a_worker_at_rest_outlives_redis(folder: Path, runs: Runs) -> None:
    url = valkey_url(folder)
    async with open_redis(url) as redis:
        async with run_valkey(folder):
            started = asyncio.Event()
            working_through = asyncio.create_task(work_until(url, runs, started, count=2))
            await accept(Turns(redis, LIFETIMES))
            await until(lambda: len(runs.ended) == 1)
        async with run_valkey(folder):
            await accept(Turns(redis, LIFETIMES))
            await asyncio.wait_for(working_through, 5)
    assert len(runs.ended) == 2


async def work_until(url: str, runs: Runs, started: asyncio.Event, count: int) -> None:
    """Works until so many turns have run."""
    async with working(url, runs.run):
        started.set()
        await until(lambda: len(runs.ended) == count, within_s=10)


async def test_a_turn_outlives_redis_and_runs_once(folder: Path, runs: Runs) -> None:
    url = valkey_url(folder)
    runs.free.clear()
    async with open_redis(url) as redis:
        turns = Turns(redis, LIFETIMES)
        async with run_valkey(folder):
            working_through = asyncio.create_task(work_until(url, runs, asyncio.Event(), count=2))
            first = await accept(turns)
            await until(lambda: runs.begun)
        runs.free.set()
        await until(lambda: runs.ended)
        async with run_valkey(folder):
            second = await accept(turns)
            await asyncio.wait_for(working_through, 5)
            assert (await turns.queue()).waiting == []
    assert runs.ended == runs.begun == [first.turn_id, second.turn_id]


@pytest.mark.parametrize("at_work", [False, True])
async def test_a_worker_stops_in_order_while_redis_is_away(
    folder: Path, runs: Runs, at_work: bool
) -> None:
    url = valkey_url(folder)
    runs.free.clear()
    async with open_redis(url) as redis, run_valkey(folder):
        if at_work:
            await accept(Turns(redis, LIFETIMES))
        worker_run = asyncio.Event()
        stop = asyncio.Event()
        working_through = asyncio.create_task(stop_when(url, runs, worker_run, stop))
        await worker_run.wait()
        if at_work:
            await until(lambda: runs.begun)
    stop.set()
    done, _ = await asyncio.wait({working_through}, timeout=5)
    working_through.cancel()
    assert done, "the worker does not stop"
    working_through.result()


async def stop_when(url: str, runs: Runs, ready: asyncio.Event, stop: asyncio.Event) -> None:
    """Works until `stop`, then stops as on a signal."""
    async with working(url, runs.run) as (worker, stopped):
        await until(lambda: worker.main_task)
        ready.set()
        await stop.wait()
        worker.handle_sig_wait_for_completion(SIGTERM)
        await asyncio.wait_for(asyncio.shield(stopped), 3)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(b"ZRANGEBYSCORE", id="while it looks for turns"),
        pytest.param(b"WATCH", id="before it marks the turn"),
        pytest.param(b"PSETEX\r\n$52\r\narq:in-progress", id="after it has marked the turn"),
        pytest.param(b"INCR\r\n", id="after it has asked for the job"),
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
        await until(lambda: len(runs.ended) == 2, within_s=3)
        await until(lambda: not valkey.exists(keys.queue()))
    assert runs.ended == runs.begun == [first.turn_id, second.turn_id]
