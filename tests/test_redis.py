"""Connections to Redis."""

import asyncio

from shared.redis import Redis


async def test_a_task_that_was_cancelled_can_still_use_a_connection(redis: Redis) -> None:
    begun = asyncio.Event()

    async def clean_up() -> str:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await redis.set("cleaned", "up")  # pyright: ignore[reportUnknownMemberType]
        return "done"

    await redis.set("dirty", "yes")  # pyright: ignore[reportUnknownMemberType]
    task = asyncio.create_task(clean_up())
    await begun.wait()
    task.cancel()
    assert await task == "done"
