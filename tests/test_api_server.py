"""The API as a process."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from api.listener import bind
from shared.redis import Redis
from tests.processes import hammer
from tests.turn_driver import TurnDriver

WITHIN_S = 20


@asynccontextmanager
async def run_api(
    listener: socket.socket | None = None, /, **environment: str
) -> AsyncGenerator[Process]:
    """`python -m api`, on a socket that listens already if given; nothing of it is left."""
    fds = [listener.fileno()] if listener else []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "api", *(f"--fd={fd}" for fd in fds)),
        env={**os.environ, **environment},
        stderr=PIPE,
        pass_fds=fds,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def serve_api(redis_url: str) -> AsyncGenerator[tuple[Process, httpx.AsyncClient]]:
    """The process, on a socket that listens already, and a client of it, once it answers."""
    with bind("127.0.0.1", 0) as listener:
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            run_api(listener, REDIS_URL=redis_url) as process,
            httpx.AsyncClient(base_url=base_url, timeout=WITHIN_S) as client,
        ):
            listener.close()
            assert (await client.get("/health/live")).status_code == 200
            yield process, client


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
    redis_url: str, redis: Redis, number: signal.Signals
) -> None:
    turn_id = await TurnDriver(redis).queue()
    async with serve_api(redis_url) as (process, client):
        async with client.stream("GET", f"/turns/{turn_id}/events") as answer:
            parts = answer.aiter_bytes()
            assert (await anext(parts)).startswith(b"retry: 2000\nid: 1\n")
            for _ in range(3):
                process.send_signal(number)
            assert b"".join([part async for part in parts]) == b": goodbye\n\n"
        errors = await errors_of(process)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "ERROR" not in errors
    assert (await TurnDriver(redis).turns.read(turn_id)).status == "queued"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_after_signal_changes_nothing(tmp_path: Path, number: signal.Signals) -> None:
    async with serve_api(f"unix://{tmp_path}/none.sock") as (process, _):
        await hammer(process, number)
        errors = await errors_of(process)
    assert process.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_before_it_has_begun_ends_it_in_order(number: signal.Signals) -> None:
    # It waits for the process to be able to hear it.
    command = [sys.executable, "-P", "-m", "api"]
    hold = partial(signal.pthread_sigmask, signal.SIG_BLOCK, [number])
    with subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=hold) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, errors) == (0, b"")


async def test_it_starts_without_redis(tmp_path: Path) -> None:
    async with serve_api(f"unix://{tmp_path}/none.sock") as (process, client):
        assert (await client.get("/queue")).status_code == 503
        process.terminate()
        errors = await errors_of(process)
    assert process.returncode == 0
    assert "Traceback" not in errors
