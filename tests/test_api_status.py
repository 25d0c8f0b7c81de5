"""Queue, status and health, whatever is down."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from shared.heartbeat import Heartbeat, write_heartbeat
from shared.redis import Redis
from shared.requests import ModelStatus, Slot, answer, next_request
from tests.serve_api import open_api
from tests.turn_driver import TurnDriver

BEAT = Heartbeat(
    database="db", worker="box:1", since=1_700_000_000.25, versions={"langgraph": "1.2.3"}
)
MODEL = ModelStatus(
    llama="ok",
    model="tiny",
    n_ctx=4096,
    compaction_trigger_tokens=3481,
    slot=Slot(busy=True, prompt_tokens=10, cached_tokens=4, decoded=2),
)


@pytest.fixture
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(redis_url, MAX_QUEUE=7) as client:
        yield client


@pytest.fixture
async def dead(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """An API whose Redis is not there."""
    async with open_api(f"unix://{tmp_path}/none.sock") as client:
        yield client


@pytest.fixture
async def deaf(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """An API whose Redis takes connections and never answers."""

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    path = tmp_path / "deaf.sock"
    server = await asyncio.start_unix_server(say_nothing, path)
    async with server, open_api(f"unix://{path}") as client:
        yield client


@asynccontextmanager
async def worker(redis: Redis, status: ModelStatus | None) -> AsyncGenerator[None]:
    """Gives a sign of life, and `status` to whoever asks; None: it takes no questions."""
    await write_heartbeat(redis, BEAT)

    async def reply() -> None:
        while status:
            await answer(redis, await next_request(redis), status)

    replying = asyncio.create_task(reply())
    try:
        yield
    finally:
        replying.cancel()
        with suppress(asyncio.CancelledError):
            await replying


async def test_the_queue(api: httpx.AsyncClient, redis: Redis) -> None:
    driver = TurnDriver(redis)
    first, second = await driver.queue(), await driver.queue()
    await driver.start(first)
    queue = (await api.get("/queue")).json()
    running = queue.pop("running")
    waiting = queue.pop("waiting")
    assert (running["turn_id"], running["status"], running["position"]) == (first, "running", 0)
    assert [(turn["turn_id"], turn["position"]) for turn in waiting] == [(second, 1)]
    assert queue == {"awaiting_decision": [], "depth": 1, "limit": 7, "worker": "lost"}
    await write_heartbeat(redis, BEAT)
    assert (await api.get("/queue")).json()["worker"] == "alive"


async def test_everything_is_well(api: httpx.AsyncClient, redis: Redis) -> None:
    driver = TurnDriver(redis)
    turn_id = await driver.queue()
    await driver.queue()
    await driver.start(turn_id)
    async with worker(redis, MODEL):
        status = (await api.get("/status")).json()
        ready = await api.get("/health/ready")
    assert status.pop("versions") == {"langgraph": "1.2.3", "turnkeeper": "0.1.0"}
    assert status == {
        "model": "tiny",
        "n_ctx": 4096,
        "compaction_trigger_tokens": 3481,
        "slot": {"busy": True, "prompt_tokens": 10, "cached_tokens": 4, "decoded": 2},
        "worker": {"alive": True, "turn_id": turn_id, "since": "2023-11-14T22:13:20.250Z"},
        "queue_depth": 1,
        "redis": "ok",
        "llama": "ok",
    }
    assert ready.status_code == 200
    assert ready.json() == {"redis": "ok", "worker": "ok", "llama": "ok"}


async def test_no_worker(api: httpx.AsyncClient) -> None:
    status = (await api.get("/status")).json()
    assert status["worker"] == {"alive": False, "turn_id": None, "since": None}
    assert (status["redis"], status["llama"], status["queue_depth"]) == ("ok", None, 0)
    await assert_not_ready(api, redis="ok", worker="lost", llama=None)


async def test_a_worker_too_busy_to_answer(api: httpx.AsyncClient, redis: Redis) -> None:
    async with worker(redis, None):
        await assert_not_ready(api, redis="ok", worker="ok", llama=None)


async def test_a_model_that_loads(api: httpx.AsyncClient, redis: Redis) -> None:
    async with worker(redis, ModelStatus(llama="loading")):
        await assert_not_ready(api, redis="ok", worker="ok", llama="loading")


async def test_redis_is_down(dead: httpx.AsyncClient) -> None:
    await assert_all_unknown(dead)
    assert (await dead.get("/health/live")).json() == {"status": "ok"}
    await assert_not_ready(dead, redis="down", worker=None, llama=None)


async def test_redis_says_nothing(deaf: httpx.AsyncClient) -> None:
    await assert_not_ready(deaf, redis="down", worker=None, llama=None)
    assert (await deaf.get("/health/live")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/turns"),
        ("POST", "/turns/stream"),
        ("GET", "/turns/x"),
        ("GET", "/turns/x/events"),
        ("POST", "/turns/x/cancel"),
        ("GET", "/queue"),
    ],
)
async def test_nothing_can_be_stored_or_read_without_redis(
    dead: httpx.AsyncClient, method: str, path: str
) -> None:
    reply = await dead.request(method, path, json={"text": "Hi"})
    assert (reply.status_code, reply.json()["code"]) == (503, "redis_away")
    assert "sock" not in reply.text


async def assert_all_unknown(api: httpx.AsyncClient) -> None:
    reply = await api.get("/status")
    assert reply.status_code == 200
    status = reply.json()
    assert status.pop("versions") == {"turnkeeper": "0.1.0"}
    assert status.pop("worker") == {"alive": None, "turn_id": None, "since": None}
    assert status.pop("redis") == "down"
    assert set(status.values()) == {None}


async def assert_not_ready(
    api: httpx.AsyncClient, redis: str, worker: str | None, llama: str | None
) -> None:
    reply = await api.get("/health/ready")
    problem = reply.json()
    assert (reply.status_code, problem["code"]) == (503, "not_ready")
    assert (problem["redis"], problem["worker"], problem["llama"]) == (redis, worker, llama)
