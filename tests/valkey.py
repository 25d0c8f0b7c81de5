"""A Valkey server of one's own."""

import asyncio
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from api.local.valkey import SOCKET, socket_url, valkey_part


def valkey_command(folder: Path) -> list[str]:
    """The server with its socket and its data in `folder`."""
    return valkey_part(folder, folder / SOCKET).command


def valkey_url(folder: Path) -> str:
    """Where the server in `folder` listens."""
    return socket_url(folder / SOCKET)


def answers(folder: Path) -> bool:
    """The server in `folder` has come up; its socket is there before it listens."""
    client: Any = Redis(unix_socket_path=str(folder / SOCKET))
    try:
        return client.ping()
    except RedisConnectionError:
        return False
    finally:
        client.close()


@asynccontextmanager
async def run_valkey(folder: Path) -> AsyncGenerator[str]:
    """Starts the server in `folder` and yields its URL once it listens; the data stays."""
    process = await asyncio.create_subprocess_exec(*valkey_command(folder), stdout=DEVNULL)
    try:
        while not answers(folder):
            await asyncio.sleep(0.01)
        yield valkey_url(folder)
    finally:
        process.terminate()
        await process.wait()
