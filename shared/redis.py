"""Redis as the rest of the code sees it, and its errors as ours."""

import math
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from shared.connections import READ_S, Pool, connection_pool
from shared.errors import RedisAway

__all__ = ["AWAY", "Redis", "connection_pool", "open_redis", "patience_of", "pop", "redis_errors"]

AWAY = (RedisConnectionError, RedisTimeoutError, OSError)
"""What redis-py raises while Redis cannot be reached or is still loading its data."""

SHORTEST_S = 0.01
"""Redis 6 takes less than a millisecond for no limit at all."""


@asynccontextmanager
async def open_redis(url: str, patience_s: float = READ_S) -> AsyncGenerator[Redis]:
    """A pool of connections that is closed at the end; nothing is sent before the first command.

    A command fails that Redis has not answered within `patience_s`.
    """
    redis = Redis.from_pool(connection_pool(url, patience_s))
    try:
        yield redis
    finally:
        await redis.aclose()


def patience_of(redis: Redis) -> float:
    """How long its connections wait for an answer, in seconds."""
    return cast(Pool, redis.connection_pool).patience_s


@contextmanager
def redis_errors() -> Generator[None]:
    """RedisAway instead of redis-py's own errors."""
    try:
        yield
    except AWAY as error:
        raise RedisAway(f"Redis cannot be reached ({type(error).__name__}).") from error
    except ResponseError as error:
        kind = type(error).__name__  # what it says may name keys
        raise RedisAway(f"Redis refused a command ({kind}).") from error


async def pop(redis: Redis, key: str, timeout_s: float = math.inf) -> bytes | None:
    """Waits for the first item of a list and takes it; None after `timeout_s`.

    Asks again before a connection's patience is over, so that a dead one is noticed. What Redis
    hands to one that died while it waited is lost.
    """
    client = cast(Any, redis)  # redis-py's blpop is typed for whole seconds and two kinds of client
    longest, end = patience_of(redis) / 2, time.monotonic() + timeout_s
    while (left := end - time.monotonic()) > 0:
        with redis_errors():
            item: tuple[bytes, bytes] | None = await client.blpop(
                [key], timeout=max(SHORTEST_S, min(left, longest))
            )
        if item:
            return item[1]
    return None
