"""A worker that is told to stop in the middle of a turn does, and the next one goes on with it."""

import asyncio
import signal
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from tests import stubborn
from tests.fake_llama import FakeLlama
from tests.service import Service, run_api
from tests.stopped import run_stoppable
from tests.until import until
from tests.valkey import run_valkey, valkey_url
from tests.zygote import Forked, ended, fork_worker

SWALLOWS = "swallows its cancellation"
TOLD = "The worker does not stop in order"


@pytest.fixture
def folder() -> Generator[Path]:
    """Short: the path of a socket has a limit."""
    with tempfile.TemporaryDirectory(prefix="tk") as name:
        yield Path(name)


class Scene:
    """`folder`: of the agent, the database and the worker's log."""

    def __init__(self, api: Service, folder: Path, environment: dict[str, str]) -> None:
        self.api = api
        self.folder = folder
        self._environment = environment

    @asynccontextmanager
    async def worker(self) -> AsyncGenerator[Forked]:
        """One without much patience."""
        log = self.folder / "worker.log"
        async with ended(await fork_worker(log, self._environment, stubborn.hasten)) as worker:
            yield worker

    async def begin(self) -> str:
        """A turn that its agent is at."""
        turn_id = await self.api.post("Begin.")
        await until((self.folder / "at_work").exists)
        return turn_id

    async def go_on(self, turn_id: str) -> dict[str, Any]:
        """The turn when it has ended, with the next worker and an agent that is let go."""
        (self.folder / "free").touch()
        async with self.worker():
            await self.api.follow(turn_id)
        return await self.api.turn(turn_id)


@asynccontextmanager
async def open_scene(redis_url: str, folder: Path, kind: str) -> AsyncGenerator[Scene]:
    """All but the worker."""
    agents = {"AGENTS": stubborn.AGENTS, "DEFAULT_AGENT": stubborn.NAME}
    async with FakeLlama() as llama, run_api(redis_url, **agents) as api:
        where = {"REDIS_URL": redis_url, "LLAMA_BASE_URL": llama.base_url}
        own = {"CHECKPOINT_DB": str(folder / "db"), "LOG_LEVEL": "WARNING", **agents}
        agent = {stubborn.FOLDER: str(folder), stubborn.KIND: kind}
        yield Scene(api, folder, {**where, **own, **agent})


async def stop(worker: Forked) -> None:
    """Tells it twice, in both ways."""
    worker.send(signal.SIGTERM)
    worker.send(signal.SIGINT)
    assert await worker.wait() == 0


@pytest.mark.parametrize("kind", stubborn.KINDS)
async def test_whatever_its_agent_does(redis_url: str, tmp_path: Path, kind: str) -> None:
    async with open_scene(redis_url, tmp_path, kind) as scene:
        async with scene.worker() as worker:
            turn_id = await scene.begin()
            await stop(worker)
        left = await scene.api.turn(turn_id)
        assert (left["status"], left["position"], left["attempt"]) == ("queued", 0, 1)
        again = await scene.go_on(turn_id)
    assert (again["status"], again["attempt"]) == ("done", 1)


async def test_while_another_process_writes_to_the_database(redis_url: str, tmp_path: Path) -> None:
    async with open_scene(redis_url, tmp_path, SWALLOWS) as scene:
        async with scene.worker() as worker:
            while not (await scene.api.client.get("/health/ready")).is_success:
                await asyncio.sleep(0.01)
            with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                turn_id = await scene.api.post("Begin.")
                await scene.api.wait_for_status(turn_id, "running")
                await stop(worker)
        again = await scene.go_on(turn_id)
    assert f"{TOLD}; the next start goes on with turn {turn_id}." in worker.log
    assert (again["status"], again["attempt"]) == ("done", 1)


async def test_while_redis_is_gone(folder: Path, tmp_path: Path) -> None:
    async with open_scene(valkey_url(folder), tmp_path, SWALLOWS) as scene:
        async with scene.worker() as worker:
            async with run_valkey(folder):
                turn_id = await scene.begin()
            await stop(worker)
        async with run_valkey(folder):
            again = await scene.go_on(turn_id)
    assert f"{TOLD}; not all is said of turn {turn_id}" in worker.log
    assert (again["status"], again["attempt"]) == ("done", 1)


async def test_while_redis_does_not_answer(folder: Path, tmp_path: Path) -> None:
    async with (
        run_stoppable(folder) as valkey,
        open_scene(valkey.url, tmp_path, SWALLOWS) as scene,
    ):
        async with scene.worker() as worker:
            turn_id = await scene.begin()
            with valkey.stopped():
                await stop(worker)
        again = await scene.go_on(turn_id)
    assert f"{TOLD}; not all is said of turn {turn_id}" in worker.log
    assert (again["status"], again["attempt"]) == ("done", 1)
