"""What the API tells the worker: that there is work, that a turn is to be undone."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress

from shared import keys
from shared.errors import RedisAway
from shared.redis import Redis
from shared.subscription import listen
from worker.insist import RETRY_S

Orders = Mapping[str, Callable[[str], None]]
"""What to do on each word, given what follows it; a word that is not known is passed over."""


async def hear_control(
    redis: Redis,
    orders: Orders,
    catch_up: Callable[[], Awaitable[None]],
    lane: str = keys.LANE,
) -> None:
    """Listens for ever; `catch_up` looks for what may have been missed before, and may raise
    RedisAway.
    """
    while True:
        with suppress(RedisAway):
            async with aclosing(listen(redis, keys.control(lane))) as messages:
                async for message in messages:
                    word, _, rest = message.decode(errors="replace").partition(" ")
                    if not word:  # heard from here on
                        await catch_up()
                    elif word in orders:
                        orders[word](rest)
        await asyncio.sleep(RETRY_S)
