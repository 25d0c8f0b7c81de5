"""API and worker as the processes that they are in service."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from socket import socket

import httpx

from api.listener import bind

WITHIN_S = 60


def run_process(*command: str, **environment: str) -> AbstractAsyncContextManager[Process]:
    """`python -m …` with these variables; ended at the end, in order if it can be."""
    return _run(command, environment)


def run_api(listener: socket, **environment: str) -> AbstractAsyncContextManager[Process]:
    """The API on a socket that listens already."""
    fd = listener.fileno()
    return _run(("api", "--fd", str(fd)), environment, fds=[fd])


@asynccontextmanager
async def _run(
    command: Sequence[str], environment: Mapping[str, str], fds: Sequence[int] = ()
) -> AsyncGenerator[Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *command), env={**os.environ, **environment}, pass_fds=fds
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def run_processes(
    redis_url: str, llama_url: str, database: str, **environment: str
) -> AsyncGenerator[httpx.AsyncClient]:
    """Worker and API, and a client of them once they are ready for turns."""
    shared = {"REDIS_URL": redis_url, "LOG_LEVEL": "WARNING", **environment}
    worker = {"LLAMA_BASE_URL": llama_url, "CHECKPOINT_DB": database}
    with bind("127.0.0.1", 0) as listener:
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            run_process("worker", **shared, **worker),
            run_api(listener, **shared),
            httpx.AsyncClient(base_url=base_url, timeout=30) as client,
        ):
            listener.close()  # it is the API's now
            async with asyncio.timeout(WITHIN_S):
                while not await _is_ready(client):
                    await asyncio.sleep(0.05)
            yield client


async def hammer(process: Process, number: signal.Signals) -> None:
    """Tells it to stop, again and again until it has."""
    while process.returncode is None:
        with suppress(ProcessLookupError):
            # Not `terminate`, which may take the exit code away from who waits for it.
            os.kill(process.pid, number)
        await asyncio.sleep(0.0001)


async def _is_ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health/ready")).is_success
    except httpx.TransportError:
        return False
