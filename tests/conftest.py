"""What every test may use: a real Valkey, emptied before each test, and a scripted model server."""

import os
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from redis import Redis as SyncRedis

from shared.redis import Redis, open_redis
from tests.valkey import valkey_command, valkey_url

# As worker/__main__.py does, before LangGraph is imported.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")


@pytest.fixture(scope="session")
def valkey() -> Generator[SyncRedis]:
    """A client of the session's server. Its folder's name is short: a socket's path has a limit."""
    with tempfile.TemporaryDirectory(prefix="tk") as name:
        folder = Path(name)
        process = subprocess.Popen(valkey_command(folder))
        while not (folder / "redis.sock").exists():
            assert process.poll() is None, (folder / "valkey.log").read_text()
            time.sleep(0.01)
        with SyncRedis(unix_socket_path=str(folder / "redis.sock")) as client:
            yield client
        process.terminate()
        process.wait()


@pytest.fixture
def redis_url(valkey: SyncRedis) -> str:
    """The URL of an empty database."""
    valkey.flushall()
    socket: str = valkey.connection_pool.connection_kwargs["path"]
    return valkey_url(Path(socket).parent)


@pytest.fixture
async def redis(redis_url: str) -> AsyncGenerator[Redis]:
    """A client of the empty database."""
    async with open_redis(redis_url) as client:
        yield client
