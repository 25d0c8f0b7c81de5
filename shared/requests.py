"""The API's questions to the worker over Redis, answered in the middle of a turn too.

A question goes to a list that the worker waits on; the answer comes back on a list of its own.
Both are gone by themselves when nobody takes them.
"""

import logging
import math
import time
from typing import TypeVar
from uuid import uuid4

import msgspec
from msgspec import Struct

from shared import keys
from shared.errors import WorkerBusy, WorkerLost
from shared.heartbeat import read_heartbeat
from shared.redis import Redis, pop, redis_errors

PATIENCE_S = 5.0


class StatusRequest(Struct, frozen=True, tag="status"):
    """What does the model server say of itself?"""


Question = StatusRequest
"""Every question there is; a union once there are more."""


class Request(Struct, frozen=True):
    """A question on its way. `deadline`: seconds since the epoch; nobody waits after it."""

    request_id: str
    deadline: float
    question: Question


class Slot(Struct, frozen=True):
    """llama-server's one slot, by its own `/slots`; tokens of its current or last call."""

    busy: bool
    prompt_tokens: int | None
    cached_tokens: int | None
    decoded: int | None


class ModelStatus(Struct, frozen=True, kw_only=True):
    """The model server's state; what it did not say is None. Sizes are tokens."""

    llama: str
    model: str | None = None
    n_ctx: int | None = None
    compaction_trigger_tokens: int | None = None
    slot: Slot | None = None


A = TypeVar("A", bound=Struct)

_requests = msgspec.json.Decoder(Request)
log = logging.getLogger(__name__)


async def ask(redis: Redis, question: Question, answer: type[A], lane: str = keys.LANE) -> A:
    """The worker's answer; raises WorkerLost at once without one, WorkerBusy after PATIENCE_S."""
    if await read_heartbeat(redis, lane) is None:
        raise WorkerLost("No worker is running.")
    request = Request(uuid4().hex, time.time() + PATIENCE_S, question)
    with redis_errors():
        async with redis.pipeline() as pipe:
            pipe.rpush(keys.requests(lane), msgspec.json.encode(request))
            pipe.expire(keys.requests(lane), _lifetime_s())
            await pipe.execute()
    reply = await pop(redis, keys.reply(request.request_id), PATIENCE_S)
    if reply is None:
        raise WorkerBusy(f"The worker did not answer in {PATIENCE_S:g} s.")
    return msgspec.json.decode(reply, type=answer)


async def next_request(redis: Redis, lane: str = keys.LANE) -> Request:
    """Waits for the next question that somebody still waits for an answer to."""
    while True:
        item = await pop(redis, keys.requests(lane))
        request = _read(item) if item else None
        if request and request.deadline > time.time():
            return request


def _read(item: bytes) -> Request | None:
    try:
        return _requests.decode(item)
    except msgspec.DecodeError as error:
        log.warning("A question is not understood: %s", error)
        return None


async def answer(redis: Redis, request: Request, value: Struct) -> None:
    """Sends the answer to whoever asked."""
    key = keys.reply(request.request_id)
    with redis_errors():
        async with redis.pipeline() as pipe:
            pipe.rpush(key, msgspec.json.encode(value))
            pipe.expire(key, _lifetime_s())
            await pipe.execute()


def _lifetime_s() -> int:
    return 2 * math.ceil(PATIENCE_S)
