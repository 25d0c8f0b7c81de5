"""Turns cancelled over HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from shared import keys
from shared.redis import Redis
from tests.redis_seen import RedisSeen, hearing
from tests.serve_api import open_api
from tests.turn_driver import TurnDriver
from tests.turns_made import undone


@pytest.fixture
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(redis_url) as client:
        yield client


@pytest.fixture
def driver(redis: Redis) -> TurnDriver:
    return TurnDriver(redis)


async def cancel(api: httpx.AsyncClient, turn_id: str) -> tuple[int, str]:
    answer = await api.post(f"/turns/{turn_id}/cancel")
    return answer.status_code, answer.json()["status"]


async def test_a_turn_that_waits_is_cancelled_at_once(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    turn_id = await driver.queue()
    first = await api.post(f"/turns/{turn_id}/cancel")
    again = await api.post(f"/turns/{turn_id}/cancel")
    assert (first.status_code, first.json()["status"]) == (202, "cancelled")
    assert first.json()["rolled_back_messages"] == 0
    assert (again.status_code, again.json()) == (200, first.json())
    assert (await api.get(f"/turns/{turn_id}")).json() == first.json()
    assert (await api.get("/queue")).json()["waiting"] == []


async def test_a_turn_that_runs_is_cancelling_until_its_worker_has_undone_it(
    api: httpx.AsyncClient, driver: TurnDriver, valkey: RedisSeen
) -> None:
    turn = await driver.start(await driver.queue())
    with hearing(valkey, keys.control()) as heard:
        assert await cancel(api, turn.turn_id) == (202, "cancelling")
        assert heard() == b"cancel " + turn.turn_id.encode()
    assert await cancel(api, turn.turn_id) == (202, "cancelling")
    running = (await api.get("/queue")).json()["running"]
    assert (running["turn_id"], running["status"]) == (turn.turn_id, "cancelling")
    assert running == (await api.get(f"/turns/{turn.turn_id}")).json()
    await driver.claims.finish(turn, turn.seq + 1, undone(turn), None)
    answer = await api.post(f"/turns/{turn.turn_id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert answer.json()["rolled_back_messages"] == 3


async def test_a_turn_that_has_ended_stays_as_it_is(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    turn_id = await driver.queue()
    await driver.run(turn_id)
    assert await cancel(api, turn_id) == (200, "done")


async def test_the_end_may_come_first(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    turn = await driver.start(await driver.queue())
    assert await cancel(api, turn.turn_id) == (202, "cancelling")
    await driver.finish(turn)
    assert await cancel(api, turn.turn_id) == (200, "done")


@pytest.mark.parametrize("started", [False, True])
async def test_twenty_at_once_are_told_the_same(
    api: httpx.AsyncClient, driver: TurnDriver, started: bool
) -> None:
    turn_id = await driver.queue()
    if started:
        await driver.start(turn_id)
    answers = await asyncio.gather(*(cancel(api, turn_id) for _ in range(20)))
    if started:
        assert answers == [(202, "cancelling")] * 20
    else:
        assert sorted(answers) == [(200, "cancelled")] * 19 + [(202, "cancelled")]


async def test_who_waits_behind_a_cancelled_turn_moves_up(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    ids = [await driver.queue() for _ in range(4)]
    await driver.start(ids[0])
    assert await cancel(api, ids[1]) == (202, "cancelled")
    queue = (await api.get("/queue")).json()
    assert [(turn["turn_id"], turn["position"]) for turn in queue["waiting"]] == [
        (ids[2], 1),
        (ids[3], 2),
    ]
    assert queue["depth"] == 2


async def test_what_redis_does_not_store_is_not_cancelled(
    redis_url: str, driver: TurnDriver, valkey: RedisSeen, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with open_api(f"unix://{tmp_path}/none.sock") as alone:
        answer = await alone.post("/turns/any/cancel")
        assert (answer.status_code, answer.json()["code"]) == (503, "redis_away")
    ids = [await driver.queue() for _ in range(2)]
    await driver.start(ids[0])
    valkey.config_set("maxmemory", 1)
    try:
        for turn_id in ids:
            answer = await api.post(f"/turns/{turn_id}/cancel")
            assert (answer.status_code, answer.json()["code"]) == (503, "redis_away")
            assert (await api.get(f"/turns/{turn_id}")).json()["status"] in ("running", "queued")
    finally:
        valkey.config_set("maxmemory", 0)
    assert await cancel(api, ids[0]) == (202, "cancelling")
    assert await cancel(api, ids[1]) == (202, "cancelled")
