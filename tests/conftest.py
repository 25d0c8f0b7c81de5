"""What every test may use: a real Valkey, emptied before each test."""

import os
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from redis import Redis as SyncRedis

from api.client.turnkeeper import TurnkeeperClient, open_client
from api.local.valkey import SOCKET
from api.settings import ApiSettings
from shared.claims import Claims
from shared.lane import Lane
from shared.redis import Redis, open_redis
from shared.turns import Turns
from tests.client_made import FakeTime
from tests.fake_api import FakeApi, run_fake_api
from tests.terminal import Run, open_terminal
from tests.turns_made import LIFETIMES
from tests.valkey import answers, valkey_command, valkey_url
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from worker.checkpoints import TurnSaver

# As worker/command.py does, before LangGraph is imported.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """What the developer has set for a service of their own is nothing to a test."""
    ours = {*ApiSettings.model_fields, *WorkerSettings.model_fields, "TURNKEEPER_URL"}
    for name in os.environ:
        if name in ours or name.startswith(("LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def valkey_folder() -> Generator[Path]:
    """Where the session's server runs. The name is short: the path of a socket has a limit."""
    with tempfile.TemporaryDirectory(prefix="tk") as name:
        folder = Path(name)
        log = folder / "valkey.log"
        with log.open("wb") as output:
            process = subprocess.Popen(valkey_command(folder), stdout=output)
        while not answers(folder):
            assert process.poll() is None, log.read_text()
            time.sleep(0.01)
        yield folder
        process.terminate()
        process.wait()


@pytest.fixture
async def redis(valkey_folder: Path) -> AsyncGenerator[Redis]:
    """A client of an empty database."""
    async with open_redis(valkey_url(valkey_folder)) as client:
        await client.flushall()  # pyright: ignore[reportUnknownMemberType]
        yield client


@pytest.fixture
def redis_url(valkey_folder: Path, redis: Redis) -> str:
    """The URL of an empty database."""
    return valkey_url(valkey_folder)


@pytest.fixture
def valkey(valkey_folder: Path, redis: Redis) -> Generator[SyncRedis]:
    """The same database as a test looks into it, beside what it tests."""
    with SyncRedis(unix_socket_path=str(valkey_folder / SOCKET)) as client:
        yield client


@pytest.fixture
def turns(redis: Redis) -> Turns:
    """The API's side of the queue."""
    return Turns(redis, LIFETIMES)


@pytest.fixture
def claims(redis: Redis) -> Claims:
    """A worker's side of the queue."""
    return Claims(redis, LIFETIMES)


@pytest.fixture
def lane(redis: Redis) -> Lane:
    """What a worker tells of the whole queue."""
    return Lane(redis, LIFETIMES)


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncGenerator["TurnSaver"]:
    """The saver of a database of its own."""
    # Imported only here, since it takes seconds.
    from worker.checkpoints import open_checkpoints

    async with open_checkpoints(tmp_path / "checkpoints.sqlite") as opened:
        yield opened


@pytest.fixture
def fake_api() -> Generator[FakeApi]:
    """A scripted API, for what asks one."""
    with run_fake_api() as api:
        yield api


@pytest.fixture
def fake_time() -> FakeTime:
    """Time that passes only by waiting."""
    return FakeTime()


@pytest.fixture
async def client(fake_api: FakeApi, fake_time: FakeTime) -> AsyncGenerator[TurnkeeperClient]:
    """A client of the scripted API."""
    async with open_client(fake_api.url, "s3cret", clock=fake_time.clock) as client:
        yield client


@pytest.fixture
def run(fake_api: FakeApi) -> Run:
    """Runs a command that asks it."""
    return open_terminal(fake_api)
