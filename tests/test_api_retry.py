"""Turns retried over HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from shared import keys
from shared.record import Failure
from shared.redis import Redis
from tests.redis_seen import RedisSeen
from tests.serve_api import open_api
from tests.turn_driver import TurnDriver
from tests.turns_made import FAILURE, failed

LOST = Failure("rollback_failed", "The thread could not be restored.")


@pytest.fixture
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(redis_url, AGENTS="other=their.package:build", MAX_QUEUE=2) as client:
        yield client


@pytest.fixture
def driver(redis: Redis) -> TurnDriver:
    return TurnDriver(redis)


async def fail(
    api: httpx.AsyncClient, driver: TurnDriver, failure: Failure = FAILURE, **body: Any
) -> str:
    """A turn that has failed."""
    posted = await api.post("/turns", json=body or {"text": "Hello", "thread_id": "t"})
    turn = await driver.start(posted.json()["turn_id"])
    await driver.claims.finish(turn, turn.seq + 1, failed(turn, failure), failure)
    return turn.turn_id


async def retry(api: httpx.AsyncClient, turn_id: str, key: str | None = None) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await api.post(f"/turns/{turn_id}/retry", headers=headers)


async def test_a_retry_is_a_new_turn_with_the_same_input(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    first = await fail(api, driver, input={"n": [1]}, thread_id="t", agent="other")
    answer = await retry(api, first)
    turn = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/turns/{turn['turn_id']}"
    assert turn["turn_id"] != first
    assert (turn["status"], turn["position"], turn["retry_of"]) == ("queued", 0, first)
    assert (turn["thread_id"], turn["agent"], turn["input"]) == ("t", "other", {"n": [1]})
    assert (await api.get(answer.headers["location"])).json() == turn
    assert (await api.get(f"/turns/{first}")).json()["status"] == "error"


async def test_a_cancelled_turn_can_be_retried_and_its_retry_too(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    turn_id = await driver.queue()
    for _ in range(3):
        await api.post(f"/turns/{turn_id}/cancel")
        answer = await retry(api, turn_id)
        assert answer.json()["retry_of"] == turn_id
        assert answer.json()["text"] == "hi"
        turn_id = answer.json()["turn_id"]


async def test_what_has_neither_failed_nor_been_cancelled_is_not_retried(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    turn_id = await driver.queue()
    codes = [(await retry(api, turn_id)).json()["code"]]
    turn = await driver.start(turn_id)
    codes.append((await retry(api, turn_id)).json()["code"])
    await api.post(f"/turns/{turn_id}/cancel")
    codes.append((await retry(api, turn_id)).json()["code"])
    await driver.finish(turn)
    answer = await retry(api, turn_id)
    assert [*codes, answer.json()["code"]] == ["not_retryable"] * 4
    assert answer.status_code == 409
    assert "done" in answer.json()["detail"]
    assert (await api.get("/queue")).json()["depth"] == 0


async def test_a_retry_waits_its_turn_and_is_refused_as_any_other(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    first = await fail(api, driver)
    assert [(await retry(api, first)).json()["position"] for _ in range(2)] == [0, 1]
    answer = await retry(api, first)
    assert (answer.status_code, answer.json()["code"]) == (429, "queue_full")
    assert int(answer.headers["retry-after"]) > 0


async def test_a_thread_that_could_not_be_restored_takes_no_turns(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    first = await fail(api, driver, LOST)
    body = {"text": "Hello", "thread_id": "t"}
    for path, request in (
        (f"/turns/{first}/retry", None),
        ("/turns", body),
        ("/turns/stream", body),
    ):
        answer = await api.post(path, json=request)
        assert (answer.status_code, answer.json()["code"]) == (409, "quarantined"), path
    turn = (await api.get(f"/turns/{first}")).json()
    assert turn["error"]["code"] == "rollback_failed"


async def test_a_thread_that_has_another_agent_by_now(
    api: httpx.AsyncClient, driver: TurnDriver, valkey: RedisSeen
) -> None:
    first = await fail(api, driver)
    valkey.delete(keys.thread("t"))  # as when nothing was heard of it for long
    await api.post("/turns", json={"input": {}, "thread_id": "t", "agent": "other"})
    answer = await retry(api, first)
    assert (answer.status_code, answer.json()["code"]) == (409, "agent_mismatch")


async def test_the_same_key_is_the_same_retry(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    first = await fail(api, driver)
    answers = await asyncio.gather(*(retry(api, first, "key") for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [202]
    [turn_id] = {answer.json()["turn_id"] for answer in answers}
    assert {answer.headers["location"] for answer in answers} == {f"/turns/{turn_id}"}
    await driver.run(turn_id)
    again = await retry(api, first, "key")
    assert (again.status_code, again.json()["status"]) == (200, "done")


async def test_another_use_of_the_key_conflicts(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    first, second = [await fail(api, driver) for _ in range(2)]
    await retry(api, first, "key")
    posted = await api.post("/turns", json={"text": "Hi"}, headers={"Idempotency-Key": "key"})
    await api.post("/turns", json={"text": "Hi"}, headers={"Idempotency-Key": "other"})
    answers = [posted, await retry(api, second, "key"), await retry(api, first, "other")]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")


async def test_a_key_is_of_visible_characters(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    answer = await retry(api, await fail(api, driver), "a b")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
