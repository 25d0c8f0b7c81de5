"""Followers over HTTP while Redis goes and comes back, with what it knew and without."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

from api import server
from api.hub import Hub
from api.mailbox import Pace
from shared.errors import RedisAway
from shared.redis import open_redis
from tests.redis_seen import looking
from tests.serve_api import open_api
from tests.turn_driver import TurnDriver
from tests.until import until
from tests.valkey import run_valkey, valkey_url

WITHIN_S = 30
HASTY = Pace(look_s=0.01, again_s=0.01, lost_s=0.03)
PATIENT = Pace(lost_s=600)


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncGenerator[TurnDriver]:
    async with open_redis(valkey_url(tmp_path)) as redis:
        yield TurnDriver(redis)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(valkey_url(tmp_path)) as client:
        yield client


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API, started later, that gives a log up soon."""
    monkeypatch.setattr(server, "Hub", partial(Hub, pace=HASTY))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API, started later, that never gives a log up."""
    monkeypatch.setattr(server, "Hub", partial(Hub, pace=PATIENT))


async def follow(stack: AsyncExitStack, client: httpx.AsyncClient, turn_id: str) -> "Reading":
    stream = client.stream("GET", f"/turns/{turn_id}/events")
    return Reading(await stack.enter_async_context(stream))


class Reading:
    """A stream's event ids and comments, one after another."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.aiter_lines()

    async def next(self) -> str:
        async with asyncio.timeout(WITHIN_S):
            async for line in self._lines:
                if line.startswith(("id: ", ": ")) and line != ": ping":
                    return line
        return "the end"


async def until_it_answers(driver: TurnDriver) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            with suppress(RedisAway):
                await driver.turns.queue()
                return
            await asyncio.sleep(0.01)


async def test_a_stream_outlives_a_restart_of_redis(
    driver: TurnDriver, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        async with run_valkey(tmp_path):
            await until_it_answers(driver)
            turn_id = await driver.queue()
            reading = await follow(stack, client, turn_id)
            assert await reading.next() == "id: 1"
        assert (await client.get(f"/turns/{turn_id}")).status_code == 503
        async with run_valkey(tmp_path):
            await until_it_answers(driver)
            await driver.run(turn_id)
            assert [await reading.next() for _ in range(3)] == ["id: 2", "id: 3", "the end"]


@pytest.mark.usefixtures("hasty")
async def test_a_stream_ends_when_its_turn_is_forgotten_although_redis_was_never_away(
    driver: TurnDriver, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(run_valkey(tmp_path))
        await until_it_answers(driver)
        reading = await follow(stack, client, await driver.queue())
        assert await reading.next() == "id: 1"
        with looking(valkey_url(tmp_path)) as valkey:
            valkey.flushall()
        assert [await reading.next() for _ in range(2)] == [": goodbye", "the end"]


@pytest.mark.usefixtures("patient")
async def test_a_stream_goes_on_when_the_worker_has_told_an_empty_redis_of_its_turn(
    driver: TurnDriver, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        async with run_valkey(tmp_path):
            await until_it_answers(driver)
            turn = await driver.start(await driver.queue())
            await driver.say(turn, 2)
            reading = await follow(stack, client, turn.turn_id)
            assert [await reading.next() for _ in range(2)] == ["id: 1", "id: 2"]
        shutil.rmtree(tmp_path / "appendonlydir")
        async with run_valkey(tmp_path):
            with looking(valkey_url(tmp_path)) as valkey:
                await until(lambda: "cmdstat_xrange" in valkey.info("commandstats"))
            await until_it_answers(driver)
            await driver.claims.revive(turn, "running")
            await driver.say(turn, 2, 2)
            await driver.finish(turn)
            assert [await reading.next() for _ in range(3)] == ["id: 3", "id: 4", "the end"]


@pytest.mark.usefixtures("hasty")
async def test_a_stream_ends_when_redis_has_forgotten_its_turn_and_the_api_goes_on(
    driver: TurnDriver, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        async with run_valkey(tmp_path):
            await until_it_answers(driver)
            lost = await driver.queue()
            reading = await follow(stack, client, lost)
            assert await reading.next() == "id: 1"
        shutil.rmtree(tmp_path / "appendonlydir")
        async with run_valkey(tmp_path):
            assert [await reading.next() for _ in range(2)] == [": goodbye", "the end"]
            await until_it_answers(driver)
            assert (await client.get(f"/turns/{lost}/events")).status_code == 404
            turn_id = await driver.queue()
            reading = await follow(stack, client, turn_id)
            assert await reading.next() == "id: 1"
            await driver.run(turn_id)
            assert [await reading.next() for _ in range(3)] == ["id: 2", "id: 3", "the end"]
