"""Followers over HTTP while Redis goes and comes back, with what it knew and without."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import httpx
import pytest

from shared.errors import RedisAway
from shared.redis import open_redis
from tests.serve_api import open_api
from tests.turn_driver import TurnDriver
from tests.valkey import run_valkey, valkey_url

WITHIN_S = 30


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncGenerator[TurnDriver]:
    async with open_redis(valkey_url(tmp_path)) as redis:
        yield TurnDriver(redis)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(valkey_url(tmp_path)) as client:
        yield client


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
