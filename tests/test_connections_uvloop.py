"""A line that was just closed, as uvloop tells of it."""

import asyncio
from typing import Any, cast

import pytest
import uvloop

from shared.errors import RedisAway
from shared.redis import Redis, open_redis, redis_errors


def test_what_is_sent_into_a_closed_line_finds_redis_away(redis_url: str) -> None:
    async def send() -> None:
        async with open_redis(redis_url) as redis:
            connection = await cast(Any, redis.connection_pool).get_connection()
            connection._writer.transport.abort()
            await asyncio.sleep(0)
            with pytest.raises(RedisAway), redis_errors():
                await connection.send_command("PING")
            assert not connection.is_connected

    uvloop.run(send())


async def test_a_fault_of_one_s_own_is_not_taken_for_a_closed_line(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_: object) -> None:
        raise RuntimeError("a fault of our own")

    connection = await cast(Any, redis.connection_pool).get_connection()
    monkeypatch.setattr(connection._writer, "writelines", write)
    with pytest.raises(RuntimeError, match="a fault of our own"), redis_errors():
        await connection.send_command("PING")
    assert not connection.is_connected
