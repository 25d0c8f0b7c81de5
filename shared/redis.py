"""Connections to Redis, and its errors as ours."""

import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

from redis._parsers import base, hiredis
from redis.asyncio import ConnectionPool, Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from shared.errors import RedisAway

__all__ = ["AWAY", "Redis", "connection_pool", "listen", "open_redis", "pop", "redis_errors"]

CONNECT_S = 2.0

AWAY = (RedisConnectionError, RedisTimeoutError, OSError)
"""What redis-py raises while Redis cannot be reached or is still loading its data."""


def connection_pool(url: str) -> ConnectionPool:
    """Connections made when they are needed; waiting for an answer has no limit of time."""
    _mend_timeouts()
    keepalive = {} if url.startswith("unix:") else {"socket_keepalive": True}
    pool = cast(Any, ConnectionPool)
    return pool.from_url(url, socket_connect_timeout=CONNECT_S, **keepalive)


def _mend_timeouts() -> None:
    """Lets a cancelled task use connections, to clean up, below Python 3.11.3 too.

    There an asyncio.timeout that expires in such a task raises CancelledError. redis-py 5.3 avoids
    it, except in its parsers; this may go with Python 3.11.2, which Debian 12 has.
    """
    if sys.version_info < (3, 11, 3):
        from async_timeout import timeout

        for parser in (hiredis, base):
            cast(Any, parser).async_timeout = timeout


@asynccontextmanager
async def open_redis(url: str) -> AsyncGenerator[Redis]:
    """A pool of connections that is closed at the end; nothing is sent before the first command."""
    redis = Redis.from_pool(connection_pool(url))
    try:
        yield redis
    finally:
        await redis.aclose()


@contextmanager
def redis_errors() -> Generator[None]:
    """RedisAway instead of redis-py's own errors."""
    try:
        yield
    except AWAY as error:
        raise RedisAway(f"Redis cannot be reached ({type(error).__name__}).") from error
    except ResponseError as error:
        raise RedisAway(f"Redis refused a command: {str(error).partition(' ')[0]}.") from error


async def pop(redis: Redis, key: str, timeout_s: float = 0) -> bytes | None:
    """Waits for the first item of a list and takes it; None after `timeout_s` (0: no limit)."""
    client = cast(
        Any, redis
    )  # redis-py's blpop is typed for whole seconds and for two kinds of client
    with redis_errors():
        item: tuple[bytes, bytes] | None = await client.blpop([key], timeout=timeout_s)
    return item[1] if item else None


async def listen(redis: Redis, channel: str) -> AsyncGenerator[bytes]:
    """The messages of a channel; the first, empty one says that from now on none is missed."""
    with redis_errors():
        async with cast(Any, redis).pubsub() as subscription:
            await subscription.subscribe(channel)
            async for message in subscription.listen():
                yield message["data"] if message["type"] == "message" else b""
