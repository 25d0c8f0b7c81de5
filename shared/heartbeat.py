"""The sign of life of the one worker: a key that is gone when it is not renewed."""

import msgspec
from msgspec import Struct

from shared import keys
from shared.redis import Redis, redis_errors

RENEW_S = 1.5
EXPIRE_S = 6


class Heartbeat(Struct, frozen=True, kw_only=True):
    """`worker`: its process and host; `database`: its file; `since`: seconds since the epoch;
    `versions`: of its libraries.
    """

    worker: str
    database: str
    since: float
    versions: dict[str, str]


async def write_heartbeat(redis: Redis, beat: Heartbeat, lane: str = keys.LANE) -> None:
    """Renews the sign of life for EXPIRE_S."""
    with redis_errors():
        await redis.set(keys.worker(lane), msgspec.json.encode(beat), ex=EXPIRE_S)


async def read_heartbeat(redis: Redis, lane: str = keys.LANE) -> Heartbeat | None:
    """The living worker's, or None when there is none."""
    with redis_errors():
        value = await redis.get(keys.worker(lane))
    return msgspec.json.decode(value, type=Heartbeat) if value else None


async def end_heartbeat(redis: Redis, lane: str = keys.LANE) -> None:
    """An orderly goodbye: the worker is seen to be gone at once."""
    with redis_errors():
        await redis.delete(keys.worker(lane))
