"""A client that has read more than Redis still has is not turned away while that is made good."""

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest

from api import service
from shared.chunks import parse
from shared.heartbeat import Heartbeat, write_heartbeat
from shared.redis import Redis
from tests.redis_seen import RedisSeen
from tests.serve_api import open_api
from tests.turn_driver import TurnDriver

BEAT = Heartbeat(worker="worker", database="database", since=1.0, versions={})


@pytest.fixture
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(redis_url) as client:
        yield client


@pytest.fixture
def driver(redis: Redis) -> TurnDriver:
    return TurnDriver(redis)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when the API has looked, and will look again; it does not give up."""
    looked, sleep = asyncio.Event(), asyncio.sleep

    async def look_again(seconds: float) -> None:
        if seconds == service.AGAIN_S:
            looked.set()
        await sleep(seconds)

    monkeypatch.setattr(service, "RETOLD_S", 600)
    monkeypatch.setattr(service.asyncio, "sleep", look_again)
    return looked


@pytest.fixture
def hurries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API looks once."""
    monkeypatch.setattr(service, "RETOLD_S", 0)


async def numbers(api: httpx.AsyncClient, turn_id: str, after: int) -> list[int]:
    answer = await api.get(f"/turns/{turn_id}/events", headers={"Last-Event-ID": f"{after}"})
    assert answer.status_code == 200, answer.text
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    return [parse(line.removeprefix("data: ").encode())[0] for line in lines]


async def test_it_goes_on_when_its_turn_is_there_again(
    api: httpx.AsyncClient, driver: TurnDriver, valkey: RedisSeen, waits: asyncio.Event
) -> None:
    turn = await driver.start(await driver.queue())
    await driver.say(turn, 2, 3)
    valkey.flushall()
    reading = asyncio.create_task(numbers(api, turn.turn_id, after=3))
    await waits.wait()
    waits.clear()
    await driver.claims.revive(turn, "running")
    await waits.wait()
    await driver.say(turn, 2, 3)
    await driver.finish(turn)
    assert await reading == [4, 5]


@pytest.mark.usefixtures("hurries")
async def test_one_of_a_turn_that_stays_unknown_is_told_so(
    api: httpx.AsyncClient, driver: TurnDriver, valkey: RedisSeen
) -> None:
    turn_id = await driver.queue()
    valkey.flushall()
    answer = await api.get(f"/turns/{turn_id}/events", headers={"Last-Event-ID": "3"})
    assert answer.status_code == 404


@pytest.mark.usefixtures("hurries")
async def test_it_may_be_wrong_when_a_worker_is_there_to_know(
    api: httpx.AsyncClient, driver: TurnDriver, redis: Redis
) -> None:
    turn = await driver.start(await driver.queue())
    await write_heartbeat(redis, BEAT)
    answer = await api.get(f"/turns/{turn.turn_id}/events", headers={"Last-Event-ID": "3"})
    assert (answer.status_code, answer.json()["code"]) == (410, "gone")


@pytest.mark.usefixtures("hurries")
async def test_it_waits_for_a_worker_when_there_is_none(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    turn = await driver.start(await driver.queue())
    where = f"/turns/{turn.turn_id}/events"
    async with api.stream("GET", where, headers={"Last-Event-ID": "3"}) as stream:
        assert stream.status_code == 200
        await driver.say(turn, 2, 3)
        await driver.finish(turn)
        told = [line async for line in stream.aiter_lines()]
    assert [line for line in told if line.startswith("id")] == ["id: 4", "id: 5"]
