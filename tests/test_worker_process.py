"""The worker as a process: how it refuses to start, stops and is found again after a crash."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from shared.chunks import type_of
from shared.heartbeat import read_heartbeat
from shared.redis import Redis
from tests.fake_llama import FakeLlama, Reply
from tests.processes import hammer, run_process
from tests.service import Service, run_api, text_of
from tests.until import until
from tests.zygote import ended, fork_worker


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a worker says what it says."""
    return tmp_path / "worker.log"


@pytest.fixture
def settings(redis_url: str, tmp_path: Path) -> dict[str, str]:
    """The variables of a worker with a database of its own."""
    database = str(tmp_path / "db")
    return {"REDIS_URL": redis_url, "CHECKPOINT_DB": database, "LOG_LEVEL": "WARNING"}


@pytest.mark.parametrize(
    ("environment", "exit_code", "line"),
    [
        ({"STEP_LIMIT": "many"}, 2, "turnkeeper: STEP_LIMIT: "),
        ({"REDIS_URL": "http://127.0.0.1"}, 2, "turnkeeper: REDIS_URL: "),
        ({"LLAMA_EXTRA_BODY": "{"}, 2, "turnkeeper: LLAMA_EXTRA_BODY: "),
        ({"AGENTS": "mine=no.such.module:build"}, 2, "turnkeeper: AGENTS: "),
        ({"CHECKPOINT_DB": "/dev/null/x/db"}, 3, "Not a directory"),
        ({"CHECKPOINT_DB": "/proc"}, 3, "Is a directory"),
    ],
)
async def test_what_it_cannot_use_is_said_in_one_line(
    environment: dict[str, str], exit_code: int, line: str, settings: dict[str, str], log: Path
) -> None:
    worker = await fork_worker(log, {**settings, **environment})
    assert await worker.wait() == exit_code, worker.log
    assert line in worker.log
    assert worker.log.count("\n") == 1


async def test_a_second_worker_on_the_same_database_names_the_first(
    settings: dict[str, str], redis: Redis, tmp_path: Path, log: Path
) -> None:
    async with ended(await fork_worker(tmp_path / "first.log", settings)) as first:
        await wait_for_worker(redis)
        second = await fork_worker(log, settings)
        assert await second.wait() == 1
    assert f"process {first.pid} on " in second.log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_can_be_stopped_before_it_has_begun(
    settings: dict[str, str], tmp_path: Path, log: Path, number: signal.Signals
) -> None:
    nowhere = {"REDIS_URL": f"unix://{tmp_path}/no.sock"}
    async with ended(await fork_worker(log, {**settings, **nowhere})) as worker:
        await until(lambda: log.exists() and "Redis cannot be reached" in worker.log)
        worker.send(number)
        assert await worker.wait() == 0
    assert "Traceback" not in worker.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_after_signal_changes_nothing(
    settings: dict[str, str], redis: Redis, number: signal.Signals
) -> None:
    # Not forked: it is the end of a whole interpreter that is hammered.
    async with run_process("worker", **settings) as worker:
        await wait_for_worker(redis)
        await hammer(worker, number)
    assert worker.returncode == 0


async def test_an_orderly_stop_lets_the_next_worker_go_on(
    settings: dict[str, str], redis: Redis, log: Path
) -> None:
    script = [Reply(content="slow", gate=asyncio.Event()), Reply(content="whole")]
    async with FakeLlama(script) as llama, run_api(settings["REDIS_URL"]) as api:
        settings["LLAMA_BASE_URL"] = llama.base_url
        async with ended(await fork_worker(log, settings)) as worker:
            turn_id = await begin_turn(api, llama)
            worker.send(signal.SIGTERM)
            worker.send(signal.SIGTERM)
            assert await worker.wait() == 0
        assert await read_heartbeat(redis) is None
        left = await api.turn(turn_id)
        assert (left["status"], left["position"]) == ("queued", 0)
        async with ended(await fork_worker(log, settings)):
            seen = await api.follow(turn_id)
        record = await api.turn(turn_id)
    assert [type_of(chunk) for chunk in seen if type_of(chunk) != "usage"] == [
        *("queued", "queued", "text", "done")
    ]
    assert (record["status"], record["attempt"]) == ("done", 1)
    assert worker.log == ""


async def test_a_killed_worker_loses_no_turn(settings: dict[str, str], log: Path) -> None:
    gate = asyncio.Event()
    script = [Reply(content="never", gate=gate), *(Reply(content=name) for name in "abc")]
    async with FakeLlama(script) as llama, run_api(settings["REDIS_URL"]) as api:
        settings["LLAMA_BASE_URL"] = llama.base_url
        async with ended(await fork_worker(log, settings)) as worker:
            left = await begin_turn(api, llama, thread_id="left")
            waiting = [await api.post("Next.", thread_id=thread) for thread in ("left", "other")]
            await worker.kill()
        async with ended(await fork_worker(log, settings)):
            ends = [await api.follow(turn_id) for turn_id in (left, *waiting)]
        states = [await api.turn(turn_id) for turn_id in (left, *waiting)]
    assert [text_of(end) for end in ends] == ["a", "b", "c"]
    assert [(state["status"], state["attempt"]) for state in states] == [
        *(("done", 2), ("done", 1), ("done", 1))
    ]


async def begin_turn(api: Service, llama: FakeLlama, **fields: Any) -> str:
    """A turn that the model server has begun to read."""
    turn_id = await api.post("Begin.", **fields)
    await llama.wait_for(lambda: bool(llama.calls), within=60)
    return turn_id


async def wait_for_worker(redis: Redis) -> None:
    """Returns once a worker is alive."""
    async with asyncio.timeout(60):
        while await read_heartbeat(redis) is None:
            await asyncio.sleep(0.02)
