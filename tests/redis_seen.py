"""What is in Redis, seen past the service's own code."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from redis import Redis

from shared import keys

RedisSeen = Any
"""A client that waits for nobody, of the `valkey` fixture. Its own types leave most unknown."""


@contextmanager
def looking(url: str) -> Generator[RedisSeen]:
    """Such a client of a server of one's own."""
    with cast(Any, Redis).from_url(url) as client:
        yield client


def stored(valkey: RedisSeen) -> dict[bytes, bytes]:
    """Every key and its value."""
    return {name: valkey.dump(name) for name in valkey.scan_iter()}


def everlasting(valkey: RedisSeen) -> set[str]:
    """The keys that never go away by themselves."""
    return {name.decode() for name in valkey.scan_iter() if valkey.ttl(name) == -1}


def log_of(valkey: RedisSeen, turn_id: str) -> list[dict[str, Any]]:
    """A turn's chunks as JSON objects, each with the number and type of its log entry."""
    return [
        {**json.loads(fields[b"body"]), "id": entry_id.decode(), "type": fields[b"type"].decode()}
        for entry_id, fields in valkey.xrange(keys.log(turn_id))
    ]


@contextmanager
def hearing(valkey: RedisSeen, channel: str) -> Generator[Callable[[], bytes]]:
    """What answers the next message of a channel, none of which is missed."""
    with valkey.pubsub() as heard:
        heard.subscribe(channel)
        assert heard.get_message(timeout=5)["type"] == "subscribe"
        yield lambda: heard.get_message(timeout=5)["data"]
