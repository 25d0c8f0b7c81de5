"""The commands that cancel and retry, as processes, and the real API."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator

import pytest

from api.settings import ApiSettings
from shared.redis import Redis
from tests.serve_api import serve_api
from tests.turn_driver import TurnDriver
from tests.turns_made import undone


@pytest.fixture
async def url(redis_url: str) -> AsyncGenerator[str]:
    async with serve_api(ApiSettings(REDIS_URL=redis_url)) as url:
        yield url


@pytest.fixture
def driver(redis: Redis) -> TurnDriver:
    return TurnDriver(redis)


async def start(url: str, *arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "api.cli", *arguments),
        env={**os.environ, "TURNKEEPER_URL": url},
        stdout=PIPE,
        stderr=PIPE,
    )


async def run(url: str, *arguments: str) -> tuple[str, str, int | None]:
    """What a command says, where, and its exit code."""
    process = await start(url, *arguments)
    output, notes = await process.communicate()
    return output.decode(), notes.decode(), process.returncode


async def turn_of(process: Process) -> str:
    """The id of the turn whose place is told first."""
    assert process.stderr
    _, turn_id, *_ = (await process.stderr.readline()).decode().split()
    return turn_id.rstrip(":")


async def test_ctrl_c_ends_a_turn_that_waits(url: str, driver: TurnDriver) -> None:
    process = await start(url, "ask", "Hi")
    turn_id = await turn_of(process)
    process.send_signal(signal.SIGINT)
    _, notes = await process.communicate()
    assert process.returncode == 2
    assert ", 0 messages rolled back" in notes.decode()
    assert (await driver.turns.read(turn_id)).status == "cancelled"


async def test_ctrl_c_has_a_turn_undone_that_runs(url: str, driver: TurnDriver) -> None:
    process = await start(url, "ask", "Hi")
    turn = await driver.start(await turn_of(process))
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(30):
        while await driver.claims.status(turn.turn_id) != "cancelling":
            await asyncio.sleep(0.01)
    await driver.say(turn, 2)
    await driver.claims.finish(turn, 3, undone(turn), None)
    output, notes = await process.communicate()
    assert process.returncode == 2
    assert output == b"2 \n"
    assert ", 3 messages rolled back" in notes.decode()


async def test_a_turn_that_runs_is_cancelled_and_retried(url: str, driver: TurnDriver) -> None:
    turn = await driver.start(await driver.queue())
    said = (f"turn {turn.turn_id}: cancelling\n", "", 0)
    assert await run(url, "cancel", turn.turn_id) == said
    _, refused, code = await run(url, "retry", turn.turn_id)
    assert ("(not_retryable)" in refused, code) == (True, 1)
    await driver.claims.finish(turn, turn.seq + 1, undone(turn), None)
    assert await run(url, "cancel", turn.turn_id) == (f"turn {turn.turn_id}: cancelled\n", "", 0)

    process = await start(url, "retry", turn.turn_id)
    again = await driver.turns.read(await turn_of(process))
    assert (again.retry_of, again.request, again.thread_id) == (
        *(turn.turn_id, turn.request, turn.thread_id),
    )
    await driver.run(again.turn_id)
    output, _ = await process.communicate()
    assert (output, process.returncode) == (b"2 \n", 0)


async def test_a_turn_is_cancelled_after_a_time(url: str) -> None:
    _, notes, code = await run(url, "ask", "Hi", "--cancel-after", "0.01")
    assert (notes.count("cancelling …"), code) == (1, 2)
