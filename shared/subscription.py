"""What is said on a channel, and the silence of a connection that is dead."""

from collections.abc import AsyncGenerator, Awaitable
from typing import Any, Protocol, cast

from shared.errors import RedisAway
from shared.redis import Redis, patience_of, redis_errors


class PubSub(Protocol):
    """What is used of redis-py's class of this name, whose own types are unknown in part."""

    def subscribe(self, *channels: str) -> Awaitable[None]: ...
    def unsubscribe(self, *channels: str) -> Awaitable[None]: ...
    def ping(self) -> Awaitable[None]: ...
    def get_message(self, *, timeout: float) -> Awaitable[dict[str, Any] | None]: ...


async def hear(pubsub: PubSub, patience_s: float) -> AsyncGenerator[dict[str, Any]]:
    """Everything that Redis says, answers to pings too.

    Redis is asked whether it is there when it was silent for `patience_s`, and has as long to
    answer; raises RedisAway.
    """
    asked = False
    while True:
        message = await pubsub.get_message(timeout=patience_s)
        if message is not None:
            asked = False
            yield message
        elif asked:
            raise RedisAway(f"Redis was silent for {2 * patience_s:g} s.")
        else:
            asked = True
            await pubsub.ping()


async def listen(redis: Redis, channel: str) -> AsyncGenerator[bytes]:
    """The messages of a channel; the first, empty one says that from now on none is missed."""
    with redis_errors():
        async with cast(Any, redis).pubsub() as pubsub:
            await pubsub.subscribe(channel)
            async for message in hear(pubsub, patience_of(redis)):
                match message:
                    case {"type": "subscribe"}:
                        yield b""
                    case {"type": "message", "data": bytes(data)}:
                        yield data
                    case _:  # an answer to a ping
                        pass
