"""The turn as a job of arq: JSON on both sides, and only the turn's id in it."""

import time
from typing import Any

import msgspec
from arq.jobs import serialize_job

FUNCTION = "run_turn"
"""The name under which the worker registers its one function."""


def encode_json(value: dict[str, Any]) -> bytes:
    """arq's serializer; what JSON cannot hold (an exception) becomes its repr."""
    return msgspec.json.encode(value, enc_hook=repr)


def decode_json(data: bytes) -> dict[str, Any]:
    """arq's deserializer; raises on anything but a JSON object, a pickle included."""
    return msgspec.json.decode(data, type=dict[str, Any])


def encode_job(turn_id: str) -> bytes:
    """The value of the job's key."""
    now_ms = int(time.time() * 1000)
    return serialize_job(FUNCTION, (turn_id,), {}, None, now_ms, serializer=encode_json)
