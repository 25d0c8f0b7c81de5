"""A chunk as it reaches a client."""

import json
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from api.client.errors import NotTurnkeeper


class Event(NamedTuple):
    """A chunk of any type: `raw` as it was received, `body` as a JSON object."""

    seq: int
    type: str
    completed: bool
    body: dict[str, Any]
    raw: str


class _Head(Struct):
    seq: int
    type: str
    completed: bool


def parse_event(raw: str) -> Event:
    """Reads an event's data; lone surrogates in it are let through. Raises NotTurnkeeper."""
    try:
        body = json.loads(raw)
        head = msgspec.convert(body, _Head)
    except (ValueError, msgspec.ValidationError):
        raise NotTurnkeeper("an event of the stream is not a chunk") from None
    return Event(head.seq, head.type, head.completed, body, raw)
