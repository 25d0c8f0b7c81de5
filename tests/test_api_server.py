"""The API as a process."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from api.listener import bind
from shared.redis import Redis
from tests.processes import hammer
from tests.turn_driver import TurnDriver

WITHIN_S = 20


@asynccontextmanager
async def run_api(**environment: str) -> AsyncGenerator[Process]:
    """`python -m api`, and nothing of it left at the end."""
    command = ("-W", "error", "-m", "api")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, env={**os.environ, **environment}, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.fixture
def port() -> int:
    with bind("127.0.0.1", 0) as listener:
        return listener.getsockname()[1]


async def until_it_lives(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await client.get("/health/live")
                return
            except httpx.TransportError:
                await asyncio.sleep(0.05)


async def errors_of(process: Process) -> str:
    """What it said until it ended."""
    async with asyncio.timeout(WITHIN_S):
        _, errors = await process.communicate()
    return errors.decode()


async def test_a_bad_setting_is_one_line_and_exit_code_2() -> None:
    async with run_api(API_HOST="0.0.0.0") as process:
        errors = await errors_of(process)
    assert process.returncode == 2
    assert errors.startswith("turnkeeper: API_HOST: ")
    assert errors.count("\n") == 1


async def test_a_port_in_use_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    with bind("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        async with run_api(API_PORT=port, REDIS_URL=f"unix://{tmp_path}/none") as process:
            errors = await errors_of(process)
    assert process.returncode == 1
    assert errors == f"turnkeeper: cannot listen on 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_open_streams_and_then_the_process(
    redis_url: str, redis: Redis, port: int, number: signal.Signals
) -> None:
    turn_id = await TurnDriver(redis).queue()
    base_url = f"http://127.0.0.1:{port}"
    async with (
        run_api(API_PORT=str(port), REDIS_URL=redis_url) as process,
        httpx.AsyncClient(base_url=base_url, timeout=WITHIN_S) as client,
    ):
        await until_it_lives(client)
        async with client.stream("GET", f"/turns/{turn_id}/events") as answer:
            parts = answer.aiter_bytes()
            assert (await anext(parts)).startswith(b"retry: 2000\nid: 1\n")
            process.send_signal(number)
            assert b"".join([part async for part in parts]) == b": goodbye\n\n"
        errors = await errors_of(process)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "ERROR" not in errors
    assert (await TurnDriver(redis).turns.read(turn_id)).status == "queued"


async def test_signal_after_signal_changes_nothing(tmp_path: Path, port: int) -> None:
    async with (
        run_api(API_PORT=str(port), REDIS_URL=f"unix://{tmp_path}/none.sock") as process,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        await until_it_lives(client)
        await hammer(process)
    assert process.returncode == 0


async def test_it_starts_without_redis(tmp_path: Path, port: int) -> None:
    async with (
        run_api(API_PORT=str(port), REDIS_URL=f"unix://{tmp_path}/none.sock") as process,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        await until_it_lives(client)
        assert (await client.get("/queue")).status_code == 503
        process.terminate()
        errors = await errors_of(process)
    assert process.returncode == 0
    assert "Traceback" not in errors
