"""Turns over HTTP: accepted, read and refused."""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from shared.redis import Redis
from tests.serve_api import open_api
from tests.turn_driver import TurnDriver

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(redis_url, AGENTS="other=their.package:build", MAX_QUEUE=3) as client:
        yield client


@pytest.fixture
def driver(redis: Redis) -> TurnDriver:
    return TurnDriver(redis)


async def post(api: httpx.AsyncClient, key: str | None = None, **body: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await api.post("/turns", json=body or {"text": "Hello"}, headers=headers)


async def test_a_turn_is_accepted_while_no_worker_runs(api: httpx.AsyncClient) -> None:
    answer = await post(api, text=" Hello \n", thread_id="my-thread_1")
    turn = answer.json()
    path = f"/turns/{turn['turn_id']}"
    assert answer.status_code == 202
    assert answer.headers["location"] == path
    assert UUID7.fullmatch(turn.pop("turn_id"))
    assert TIME.fullmatch(turn.pop("created_at"))
    assert turn == {
        "thread_id": "my-thread_1",
        "agent": "chat",
        "text": "Hello",
        "status": "queued",
        "position": 0,
        "eta_s": None,
        "started_at": None,
        "finished_at": None,
        "attempt": 0,
        "run_id": None,
        "trace_url": None,
        "error": None,
        "rolled_back_messages": None,
        "usage": None,
        "interrupts": [],
        "retry_of": None,
        "links": {
            "self": path,
            "events": f"{path}/events",
            "cancel": f"{path}/cancel",
            "thread": "/threads/my-thread_1",
        },
    }


async def test_a_turn_without_a_thread_begins_one(api: httpx.AsyncClient) -> None:
    threads = {(await post(api, text="Hi", thread_id=None)).json()["thread_id"] for _ in range(2)}
    assert len(threads) == 2
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,128}", thread_id) for thread_id in threads)


async def test_an_object_goes_to_an_agent_that_takes_one(api: httpx.AsyncClient) -> None:
    turn = (await post(api, input={"n": 2**70, "ü": [1.5]}, agent="other")).json()
    assert turn["input"] == {"n": 2**70, "ü": [1.5]}
    assert "text" not in turn


async def test_a_thread_keeps_its_agent(api: httpx.AsyncClient) -> None:
    await post(api, text="Hi", thread_id="t", agent="other")
    assert (await post(api, input={}, thread_id="t")).json()["agent"] == "other"
    answer = await post(api, text="Hi", thread_id="t", agent="chat")
    assert (answer.status_code, answer.json()["code"]) == (409, "agent_mismatch")


async def test_position_counts_the_turns_before(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    ids = [(await post(api)).json()["turn_id"] for _ in range(3)]
    running = await driver.start(ids[0])

    async def places() -> list[int | None]:
        return [(await api.get(f"/turns/{turn_id}")).json()["position"] for turn_id in ids]

    assert await places() == [0, 1, 2]
    await driver.finish(running)
    assert await places() == [None, 0, 1]


async def test_an_ended_turn_says_how_it_went(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    turn_id = (await post(api)).json()["turn_id"]
    await driver.run(turn_id)
    turn = (await api.get(f"/turns/{turn_id}")).json()
    assert (turn["status"], turn["attempt"], turn["run_id"]) == ("done", 1, turn_id)
    assert TIME.fullmatch(turn["started_at"])
    assert TIME.fullmatch(turn["finished_at"])
    assert turn["usage"]["calls"] == []


async def test_the_same_key_and_body_is_the_same_turn(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    first = await post(api, "key", text="Hi", thread_id=None)
    second = await api.post(
        "/turns", content=b'{ "text" : "\\u0048i" }', headers={"Idempotency-Key": "key"}
    )
    assert (first.status_code, second.status_code) == (202, 200)
    assert second.json() == first.json()
    await driver.run(first.json()["turn_id"])
    assert (await post(api, "key", text="Hi")).json()["status"] == "done"


async def test_the_same_key_with_another_body_conflicts(api: httpx.AsyncClient) -> None:
    await post(api, "key", text="Hi")
    answer = await post(api, "key", text="Ho")
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")


async def test_fifty_at_once_with_one_key_make_one_turn(api: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(post(api, "key", text="Hi") for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [202]
    assert len({answer.json()["turn_id"] for answer in answers}) == 1
    assert (await api.get("/queue")).json()["depth"] == 1


@pytest.mark.parametrize("key", ["", "a b", "ü", "a" * 256, "a\tb"])
async def test_a_key_is_of_visible_characters(api: httpx.AsyncClient, key: str) -> None:
    headers = {b"Idempotency-Key": key.encode()}
    answer = await api.post("/turns", json={"text": "Hi"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


async def test_a_full_queue_says_when_to_try_again(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    first = (await post(api)).json()["turn_id"]
    await post(api)
    await post(api)
    answer = await post(api)
    assert (answer.status_code, answer.json()["code"]) == (429, "queue_full")
    assert int(answer.headers["retry-after"]) > 0
    await driver.start(first)
    assert (await post(api)).status_code == 202


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/turns/unknown", 404, "unknown_turn"),
        ("GET", "/turns/unknown/events", 404, "unknown_turn"),
        ("POST", "/turns/unknown/cancel", 404, "unknown_turn"),
        ("POST", "/turns/unknown/retry", 404, "unknown_turn"),
        ("GET", "/turns/%00%ff", 404, "unknown_turn"),
        ("POST", "/turns/%00%ff/cancel", 404, "unknown_turn"),
        ("POST", "/turns/%00%ff/retry", 404, "unknown_turn"),
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/schema/nowhere", 404, "not_found"),
        ("DELETE", "/turns/unknown", 405, "method_not_allowed"),
        ("GET", "/turns", 405, "method_not_allowed"),
    ],
)
async def test_what_is_not_there_is_a_problem(
    api: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await api.request(method, path)
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem.keys() == {"type", "title", "status", "detail", "code"}


async def test_what_nobody_expected_is_told_without_its_inside(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("shared.turns.Turns.read", fail)
    async with open_api(redis_url) as api:
        answer = await api.get("/turns/x")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert "a secret" in caplog.text
