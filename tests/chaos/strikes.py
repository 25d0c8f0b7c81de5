"""What is done to a service, one thing of each kind before any comes again."""

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any, cast

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.chaos.parts import Part, Parts

DECK = [
    *["worker killed"] * 2,
    "worker stopped",
    "API killed",
    "API stopped",
    "Redis killed",
    "Redis stopped",
    *["connections dropped"] * 2,
]
MOST_LATER_S = 0.3


def deal(random: Random) -> Iterator[str]:
    """The kinds, in a new order each time."""
    while True:
        yield from random.sample(DECK, len(DECK))


class Strikes:
    """`counts`: how many of each kind. Those on one part come one by one, others meanwhile."""

    def __init__(self, parts: Parts, random: Random) -> None:
        self.counts = Counter[str]()
        self._parts = parts
        self._random = random
        self._kinds = deal(random)
        self._locks = {name: asyncio.Lock() for name in ("worker", "API", "Redis", "connections")}

    async def strike(self) -> None:
        """One more, a little later."""
        kind = next(self._kinds)
        what, how = kind.split()
        later_s = self._random.uniform(0, MOST_LATER_S)
        async with self._locks[what]:
            await asyncio.sleep(later_s)
            await self._of(what)(signal.SIGKILL if how == "killed" else signal.SIGTERM)
        self.counts[kind] += 1

    def _of(self, what: str) -> Callable[[signal.Signals], Awaitable[None]]:
        if what == "connections":
            return lambda _: asyncio.to_thread(drop_connections, self._parts.redis_url)
        part = self._part(what)
        return lambda number: part.strike(number, self._random)

    def _part(self, what: str) -> Part:
        if what == "API":
            return self._random.choice(self._parts.apis)
        return self._parts.worker if what == "worker" else self._parts.redis


def drop_connections(redis_url: str) -> None:
    """All that Redis has, but for who asks; nothing happens while it is away itself."""
    with cast(Any, Redis).from_url(redis_url) as client, suppress(RedisConnectionError):
        for kind in ("normal", "pubsub"):
            client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
