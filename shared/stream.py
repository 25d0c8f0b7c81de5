"""A turn's chunks in Redis: the log to read back, the channel to hear at once."""

from collections.abc import AsyncGenerator
from typing import NamedTuple, cast

from shared import keys
from shared.chunks import TERMINAL_TYPES
from shared.redis import Redis, redis_errors

PAGE = 1000


class Entry(NamedTuple):
    """One chunk as stored."""

    seq: int
    type: str
    body: bytes

    @property
    def terminal(self) -> bool:
        """Nothing follows this chunk."""
        return self.type in TERMINAL_TYPES


def parse_message(data: bytes) -> Entry:
    """What the channel carries: `<seq> <type> <body>`."""
    seq, kind, body = data.split(b" ", 2)
    return Entry(int(seq), kind.decode(), body)


async def exists(redis: Redis, turn_id: str) -> bool:
    """The turn's chunks are still kept."""
    with redis_errors():
        return bool(await redis.exists(keys.log(turn_id)))


async def read(redis: Redis, turn_id: str, after: int) -> AsyncGenerator[Entry]:
    """The stored chunks with a number above `after`, in order."""
    while True:
        with redis_errors():
            page = cast(
                list[tuple[bytes, dict[bytes, bytes]]],
                await redis.xrange(keys.log(turn_id), min=f"({after}-0", count=PAGE),
            )
        for entry_id, fields in page:
            after = int(entry_id.partition(b"-")[0])
            yield Entry(after, fields[b"type"].decode(), fields[b"body"])
        if len(page) < PAGE:
            return
