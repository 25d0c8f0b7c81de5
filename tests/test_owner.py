"""One worker for one database."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shared.heartbeat import Heartbeat, end_heartbeat, write_heartbeat
from shared.lock import describe_process
from shared.redis import Redis
from worker import owner
from worker.errors import DatabaseTaken, DatabaseUnusable
from worker.owner import await_queue, own

ANOTHER_WORKER = """
import asyncio, sys
from pathlib import Path
from worker.owner import own

async def main():
    async with own(Path(sys.argv[1]), wait=False):
        print("mine", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoints.sqlite"
    path.touch()
    return path


@pytest.fixture
def log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> pytest.LogCaptureFixture:
    """What is logged while one asks again and again."""
    monkeypatch.setattr(owner, "RETRY_S", 0.001)
    caplog.set_level(logging.INFO, "worker.owner")
    return caplog


@asynccontextmanager
async def owned_by_another_process(database: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ANOTHER_WORKER, str(database)), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    try:
        assert await process.stdout.readline() == b"mine\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def take(database: Path, *, wait: bool = False) -> None:
    async with own(database, wait=wait):
        pass


async def test_a_second_owner_is_told_who_the_first_one_is(database: Path) -> None:
    async with owned_by_another_process(database) as process:
        with pytest.raises(DatabaseTaken, match=f"process {process.pid} on "):
            await take(database)


async def test_an_owner_of_the_same_process_is_one_too(database: Path) -> None:
    async with own(database, wait=False):
        assert f"process {os.getpid()} on " in describe_process()
        with pytest.raises(DatabaseTaken, match=describe_process()):
            await take(database)
    await take(database)


async def test_the_lock_goes_with_a_process_that_is_killed(database: Path) -> None:
    async with owned_by_another_process(database) as process:
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await take(database)


async def test_whoever_waits_says_so_once_and_gets_it_when_the_owner_goes(
    database: Path, log: pytest.LogCaptureFixture
) -> None:
    async with own(database, wait=False):
        waiting = asyncio.create_task(take(database, wait=True))
        await asyncio.wait({waiting}, timeout=0.05)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 30)
    assert log.messages == [f"Waiting for {describe_process()}: it has {database}."]


async def test_whoever_is_not_to_wait_does_not_say_so(
    database: Path, log: pytest.LogCaptureFixture
) -> None:
    async with own(database, wait=False):
        with pytest.raises(DatabaseTaken):
            await take(database)
    assert log.messages == []


@pytest.mark.parametrize("wait", [False, True])
async def test_whoever_waits_for_the_queue_says_so_once(
    redis: Redis, database: Path, log: pytest.LogCaptureFixture, wait: bool
) -> None:
    theirs = Heartbeat(worker="process 1 on there", database="theirs", since=0, versions={})
    await write_heartbeat(redis, theirs)
    waiting = asyncio.create_task(await_queue(redis, database, wait=wait))
    await asyncio.wait({waiting}, timeout=0.05)
    await end_heartbeat(redis)
    await asyncio.wait_for(waiting, 30)
    assert log.messages == ["Waiting for process 1 on there: it serves the queue, with theirs."]


async def test_each_database_has_its_own_owner(database: Path) -> None:
    async with own(database, wait=False):
        await take(database.with_name("another.sqlite"))


async def test_a_database_by_another_name_is_the_same_one(database: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.sqlite"
    link.parent.mkdir()
    link.symlink_to(database)
    async with own(database, wait=False):
        with pytest.raises(DatabaseTaken):
            await take(link)


async def test_a_lock_that_cannot_be_made_is_told_in_the_system_s_words(database: Path) -> None:
    database.with_name(database.name + ".lock").mkdir()
    with pytest.raises(DatabaseUnusable, match="Is a directory"):
        await take(database)
