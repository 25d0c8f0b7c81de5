"""Waiting for what must come true, never for a length of time."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], within_s: float = 30.0) -> None:
    """Waits until `condition` holds; raises TimeoutError."""
    async with asyncio.timeout(within_s):
        # What is waited for may be in Redis or in another process, which set no event here.
        while not condition():
            await asyncio.sleep(0.002)
