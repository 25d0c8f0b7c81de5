"""Patience with Redis: what must be said is said again until it is heard."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.errors import RedisAway

RETRY_S = 0.2

T = TypeVar("T")
log = logging.getLogger(__name__)


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """What `call` answers, tried again while Redis is away; it must not mind being repeated."""
    told = False
    while True:
        try:
            return await call()
        except RedisAway as error:
            if not told:
                log.warning("%s Trying again until it is back.", error)
                told = True
            await asyncio.sleep(RETRY_S)
