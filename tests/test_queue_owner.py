"""One worker for one queue, as far as a sign of life can tell."""

import asyncio
from pathlib import Path

import pytest

from shared.heartbeat import Heartbeat, end_heartbeat, write_heartbeat
from shared.redis import Redis
from worker import owner
from worker.errors import QueueTaken
from worker.owner import await_queue, describe_database


def beat_of(database: Path) -> Heartbeat:
    return Heartbeat(
        worker="process 1 on there", database=describe_database(database), since=0, versions={}
    )


async def test_a_queue_that_nobody_serves_is_free(redis: Redis, tmp_path: Path) -> None:
    await await_queue(redis, tmp_path / "mine", wait=False)


async def test_a_sign_of_life_on_the_same_database_is_of_a_worker_that_died(
    redis: Redis, tmp_path: Path
) -> None:
    await write_heartbeat(redis, beat_of(tmp_path / "mine"))
    await await_queue(redis, tmp_path / "mine", wait=False)


async def test_a_worker_with_another_database_is_named(
    redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "EXPIRE_S", 0)
    monkeypatch.setattr(owner, "RENEW_S", 0)
    await write_heartbeat(redis, beat_of(tmp_path / "theirs"))
    with pytest.raises(QueueTaken, match="process 1 on there"):
        await await_queue(redis, tmp_path / "mine", wait=False)


@pytest.mark.parametrize("wait", [False, True])
async def test_the_sign_of_life_of_a_dead_worker_is_waited_for(
    redis: Redis, tmp_path: Path, wait: bool
) -> None:
    await write_heartbeat(redis, beat_of(tmp_path / "theirs"))
    waiting = asyncio.create_task(await_queue(redis, tmp_path / "mine", wait=wait))
    await asyncio.wait({waiting}, timeout=0.05)
    assert not waiting.done()
    await end_heartbeat(redis)
    await asyncio.wait_for(waiting, 30)
