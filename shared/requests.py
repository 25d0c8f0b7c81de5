"""The API's questions to the worker over Redis, answered in the middle of a turn too.

A question's id goes to a list that the worker waits on; the question itself is there only as long
as somebody waits for the answer, by Redis' own clock. The answer comes back on a list of its own.
All of them are gone by themselves when nobody takes them.
"""

import logging
import math
from typing import TypeVar, cast
from uuid import uuid4

import msgspec
from msgspec import Raw, Struct

from shared import characters, keys
from shared.errors import (
    ThreadRunning,
    ThreadUnreadable,
    TurnkeeperError,
    UnknownThread,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)
from shared.heartbeat import read_heartbeat
from shared.redis import Redis, pop, redis_errors
from shared.threads import ThreadQuestion

PATIENCE_S = 5.0

REFUSALS = {
    kind.code: kind for kind in (UnknownThread, ThreadRunning, ThreadUnreadable, WorkerFailed)
}
"""What the worker may answer instead, as the asker is told it."""


class StatusRequest(Struct, frozen=True, tag="status"):
    """What does the model server say of itself?"""


Question = StatusRequest | ThreadQuestion


class Request(Struct, frozen=True):
    """A question that somebody waits for an answer to."""

    request_id: str
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


class Refusal(Struct, frozen=True):
    """Why there is no answer."""

    code: str
    detail: str


class Reply(Struct, frozen=True, omit_defaults=True):
    """The answer as JSON, or the refusal."""

    answer: Raw = Raw(b"null")
    refusal: Refusal | None = None


A = TypeVar("A", bound=Struct)

_questions: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
_replies = msgspec.json.Decoder(Reply)
log = logging.getLogger(__name__)


async def ask(redis: Redis, question: Question, answer: type[A], lane: str = keys.LANE) -> A:
    """The worker's answer; raises WorkerLost at once without one, WorkerBusy after PATIENCE_S, and
    what it refuses with.
    """
    if await read_heartbeat(redis, lane) is None:
        raise WorkerLost("No worker is running.")
    request_id = uuid4().hex
    with redis_errors():
        async with redis.pipeline() as pipe:
            pipe.set(
                keys.question(request_id),
                msgspec.json.encode(question),
                px=math.ceil(1000 * PATIENCE_S),
            )
            pipe.rpush(keys.requests(lane), request_id)
            pipe.expire(keys.requests(lane), _lifetime_s())
            await pipe.execute()
    reply = await pop(redis, keys.reply(request_id), PATIENCE_S)
    if reply is None:
        raise WorkerBusy(f"The worker did not answer in {PATIENCE_S:g} s.")
    return _read_reply(reply, answer)


def _read_reply(reply: bytes, answer: type[A]) -> A:
    read = _replies.decode(reply)
    if refusal := read.refusal:
        raise REFUSALS.get(refusal.code, WorkerFailed)(refusal.detail)
    return msgspec.json.decode(read.answer, type=answer)


async def next_request(redis: Redis, lane: str = keys.LANE) -> Request:
    """Waits for the next question that somebody still waits for an answer to."""
    while True:
        item = await pop(redis, keys.requests(lane))
        if item and (request := await _take(redis, item.decode(errors="replace"))):
            return request


async def _take(redis: Redis, request_id: str) -> Request | None:
    with redis_errors():
        async with redis.pipeline() as pipe:
            pipe.get(keys.question(request_id))
            pipe.delete(keys.question(request_id))
            question, _ = cast(list[bytes | None], await pipe.execute())
    try:
        return Request(request_id, _questions.decode(question)) if question else None
    except msgspec.DecodeError as error:
        log.warning("A question is not understood: %s", error)
        return None


async def answer(redis: Redis, request: Request, value: Struct | TurnkeeperError) -> None:
    """Sends the answer, or why there is none, to whoever asked."""
    key = keys.reply(request.request_id)
    with redis_errors():
        async with redis.pipeline() as pipe:
            pipe.rpush(key, encode_reply(value))
            pipe.expire(key, _lifetime_s())
            await pipe.execute()


def encode_reply(value: Struct | TurnkeeperError) -> bytes:
    """What is sent."""
    if isinstance(value, TurnkeeperError):
        return msgspec.json.encode(Reply(refusal=Refusal(value.code, str(value))))
    return msgspec.json.encode(Reply(answer=Raw(characters.encode(value))))


def _lifetime_s() -> int:
    return 2 * math.ceil(PATIENCE_S)
