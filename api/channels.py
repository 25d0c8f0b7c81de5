"""One connection to Redis that hears the channels of all turns that somebody follows here."""

import asyncio
import logging
from typing import Any, Protocol, cast

from shared import keys
from shared.errors import RedisAway
from shared.redis import Redis, patience_of, redis_errors
from shared.subscription import PubSub, hear

RETRY_S = 0.2

IDLE = "none"
"""No turn has this id; its channel keeps the connection readable while nobody follows."""

logger = logging.getLogger(__name__)


class Listener(Protocol):
    """Who wants to hear, and is told."""

    def wanted(self) -> set[str]:
        """The turns to hear."""
        ...

    def acknowledge(self, turn_id: str) -> None:
        """From here on all of the turn's chunks will be told; earlier ones may be missing."""
        ...

    def tell(self, turn_id: str, message: bytes) -> None:
        """A chunk as it was published."""
        ...


class Channels:
    """Subscribes to what its listener wants, again after each loss of the connection."""

    def __init__(self, redis: Redis, listener: Listener) -> None:
        self._redis = redis
        self._listener = listener
        self._acknowledged: set[str] = set()
        self._changed = asyncio.Event()
        self._lost = False

    def review(self) -> None:
        """The listener wants something else now."""
        self._changed.set()

    def hears(self, turn_id: str) -> bool:
        """Redis has acknowledged the subscription, and the connection is not known to be lost."""
        return turn_id in self._acknowledged

    async def run(self) -> None:
        """Listens until it is cancelled."""
        while True:
            try:
                with redis_errors():
                    async with cast(Any, self._redis).pubsub() as pubsub:
                        await self._serve(pubsub)
            except RedisAway as away:
                if not self._lost:
                    logger.warning("Chunks cannot be heard: %s", away)
            self._lost = True
            self._acknowledged.clear()
            await asyncio.sleep(RETRY_S)

    async def _serve(self, pubsub: PubSub) -> None:
        """Not a task group: it forgets that it was cancelled when a task fails just then."""
        await pubsub.subscribe(keys.channel(IDLE))
        tasks = [
            asyncio.create_task(self._hear(pubsub)),
            asyncio.create_task(self._subscribe(pubsub)),
        ]
        try:
            failed, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            failed.pop().result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _subscribe(self, pubsub: PubSub) -> None:
        """Keeps what Redis is asked for equal to what is wanted."""
        asked: set[str] = set()
        while True:
            self._changed.clear()
            wanted = self._listener.wanted()
            self._acknowledged -= asked - wanted
            await _ask(pubsub, wanted - asked, asked - wanted)
            asked = wanted
            await self._changed.wait()

    async def _hear(self, pubsub: PubSub) -> None:
        async for message in hear(pubsub, patience_of(self._redis)):
            match message:
                case {"type": "subscribe", "channel": bytes(channel)}:
                    self._acknowledge(_turn_of(channel))
                case {"type": "unsubscribe", "channel": bytes(channel)}:
                    # Its subscription may have been acknowledged after it was no longer wanted.
                    self._acknowledged.discard(_turn_of(channel))
                case {"type": "message", "channel": bytes(channel), "data": bytes(data)}:
                    self._listener.tell(_turn_of(channel), data)
                case _:  # an answer to a ping
                    pass

    def _acknowledge(self, turn_id: str) -> None:
        if self._lost:
            self._lost = False
            logger.info("Chunks are heard again.")
        self._acknowledged.add(turn_id)
        self._listener.acknowledge(turn_id)


async def _ask(pubsub: PubSub, new: set[str], gone: set[str]) -> None:
    if gone:
        await pubsub.unsubscribe(*map(keys.channel, gone))
    if new:
        await pubsub.subscribe(*map(keys.channel, new))


def _turn_of(channel: bytes) -> str:
    return keys.channel_turn(channel.decode())
