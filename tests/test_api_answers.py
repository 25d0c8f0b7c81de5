"""What the API answers is what its schema says."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import ValidationError

from shared import keys
from shared.redis import Redis
from tests.openapi_seen import (
    Json,
    Route,
    check,
    check_answer,
    operations,
    read_body,
    read_schema,
)
from tests.redis_seen import RedisSeen
from tests.serve_api import open_api
from tests.turn_driver import TurnDriver

POST: Route = ("post", "/turns")
STREAM: Route = ("post", "/turns/stream")
TURN: Route = ("get", "/turns/{turn_id}")
EVENTS: Route = ("get", "/turns/{turn_id}/events")
CANCEL: Route = ("post", "/turns/{turn_id}/cancel")
RETRY: Route = ("post", "/turns/{turn_id}/retry")


class Described:
    """A client that believes nothing that the schema does not say."""

    def __init__(self, api: httpx.AsyncClient, schema: Json) -> None:
        self.api = api
        self.schema = schema

    async def ask(self, route: Route, turn_id: str = "", **request: Any) -> httpx.Response:
        """The answer, once it is seen to be described."""
        method, path = route
        answer = await self.api.request(method, path.format(turn_id=turn_id), **request)
        check_answer(self.schema, route, answer)
        return answer

    async def status(self, route: Route, turn_id: str = "", **request: Any) -> int:
        """The answer's status, once it is seen to be described."""
        return (await self.ask(route, turn_id, **request)).status_code


@pytest.fixture
async def api(redis_url: str) -> AsyncGenerator[Described]:
    async with open_api(redis_url, MAX_QUEUE=1) as client:
        yield Described(client, await read_schema(client))


@pytest.fixture
def driver(redis: Redis) -> TurnDriver:
    return TurnDriver(redis)


@pytest.mark.parametrize("route", [POST, STREAM])
async def test_refusals_of_a_turn(api: Described, route: Route) -> None:
    key = {"Idempotency-Key": "k"}
    assert await api.status(POST, json={"text": "hi"}, headers=key) == 202
    assert await api.status(POST, json={"text": "hi"}, headers=key) == 200
    assert await api.status(route, json={"text": "ho"}, headers=key) == 409
    assert await api.status(route, json={"text": "hi"}) == 429
    assert await api.status(route, content="no JSON") == 400
    assert await api.status(route, json={"text": "x" * 65_537}) == 413
    assert await api.status(route, json={}) == 422
    assert await api.status(route, json={"text": "hi"}, headers={"Origin": "http://else"}) == 403


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": "hi", "input": {}},
        {"text": ""},
        {"input": []},
        {"text": "hi", "thread_id": "a b"},
        {"text": "hi", "agent": 1},
        {"text": "hi", "more": 1},
    ],
)
async def test_a_body_that_the_schema_forbids_is_refused(api: Described, body: Json) -> None:
    with pytest.raises(ValidationError):
        check(api.schema, read_body(api.schema)["schema"], body)
    assert await api.status(POST, json=body) == 422


@pytest.mark.parametrize("name", ["text", "thread"])
async def test_the_examples_of_a_body_are_accepted(api: Described, name: str) -> None:
    assert await api.status(POST, json=read_body(api.schema)["examples"][name]["value"]) == 202


async def test_a_repeated_turn_streamed_and_gone(
    api: Described, driver: TurnDriver, valkey: RedisSeen
) -> None:
    request: Json = {"json": {"text": "hi"}, "headers": {"Idempotency-Key": "k"}}
    turn_id = (await api.ask(POST, **request)).json()["turn_id"]
    await driver.run(turn_id)
    assert await api.status(STREAM, **request) == 200
    valkey.delete(keys.log(turn_id))
    assert await api.status(STREAM, **request) == 410


async def test_reading_and_following(api: Described, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    assert await api.status(EVENTS, turn_id, params={"after": "9"}) == 410
    await driver.run(turn_id)
    assert await api.status(TURN, turn_id) == 200
    assert await api.status(TURN, "nobody") == 404
    assert await api.status(EVENTS, turn_id) == 200
    assert await api.status(EVENTS, turn_id, params={"after": "3"}) == 204
    assert await api.status(EVENTS, turn_id, params={"after": "x"}) == 400
    assert await api.status(EVENTS, "nobody") == 404


async def test_cancelling(api: Described, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    assert await api.status(CANCEL, turn_id) == 202
    assert await api.status(CANCEL, turn_id) == 200
    assert await api.status(CANCEL, "nobody") == 404
    running = await driver.queue()
    await driver.start(running)
    assert await api.status(CANCEL, running) == 202


async def test_retrying(api: Described, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    key = {"Idempotency-Key": "k"}
    assert await api.status(RETRY, turn_id) == 409
    await api.ask(CANCEL, turn_id)
    assert await api.status(RETRY, turn_id, headers=key) == 202
    assert await api.status(RETRY, turn_id, headers=key) == 200
    assert await api.status(RETRY, turn_id, headers={"Idempotency-Key": "a b"}) == 422
    assert await api.status(RETRY, turn_id) == 429
    assert await api.status(RETRY, "nobody") == 404


async def test_the_service(api: Described, driver: TurnDriver) -> None:
    await driver.start(await driver.queue())
    await driver.queue()
    queue = (await api.ask(("get", "/queue"))).json()
    assert queue["running"]
    assert queue["waiting"]
    assert await api.status(("get", "/status")) == 200
    assert await api.status(("get", "/health/live")) == 200
    assert await api.status(("get", "/health/ready")) == 503


async def test_everything_behind_a_token(redis_url: str) -> None:
    async with open_api(redis_url, API_TOKEN="sesame") as client:
        client.headers["Authorization"] = "Bearer sesame"
        api = Described(client, await read_schema(client))
        client.headers["Authorization"] = "Bearer wrong"
        for route, operation in operations(api.schema).items():
            is_open = operation.get("security") == [{}]
            assert (await api.status(route, "t", json={"text": "hi"}) == 401) != is_open, route


async def test_everything_without_redis(tmp_path: Path) -> None:
    async with open_api(f"unix://{tmp_path}/none.sock") as client:
        api = Described(client, await read_schema(client))
        for route, operation in operations(api.schema).items():
            expected = 503 if "503" in operation["responses"] else 200
            assert await api.status(route, "t", json={"text": "hi"}) == expected, route
