"""Redis that accepts a connection and then says nothing is as good as away."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from shared.connections import READ_S
from shared.errors import RedisAway


@asynccontextmanager
async def redis_deadline(seconds: float = READ_S) -> AsyncGenerator[None]:
    """RedisAway when what stands inside takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise RedisAway(f"Redis did not answer in {seconds:g} s.") from None
