"""The transitions of a turn that the API makes, each one script, so that Redis decides races."""

import logging
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from shared import chunks, jobs, keys, scripts
from shared.chunks import Cancelled, Place, Queued
from shared.errors import (
    AgentMismatch,
    IdempotencyConflict,
    Quarantined,
    QueueFull,
    UnknownTurn,
)
from shared.record import Lifetimes, Status, TurnRecord, TurnRequest, parse_record
from shared.redis import Redis, redis_errors

log = logging.getLogger(__name__)


class NewTurn(Struct, frozen=True, kw_only=True):
    """A turn to be accepted. `agent`: empty for the thread's own; `body_hash`: of the request;
    `retry_of`: the turn that it tries again, if it does.
    """

    turn_id: str
    thread_id: str
    agent: str
    request: TurnRequest
    idempotency_key: str = ""
    body_hash: str = ""
    retry_of: str = ""


class Admission(NamedTuple):
    """`turn`: as accepted; None when the idempotency key named an earlier one."""

    turn_id: str
    turn: TurnRecord | None

    @property
    def repeated(self) -> bool:
        """The turn was accepted before."""
        return self.turn is None


class Cancellation(NamedTuple):
    """The turn's status now, and whether this call ended it."""

    status: Status
    ended_now: bool


class QueueSnapshot(NamedTuple):
    """The running turn and the waiting ones in order, at one instant."""

    running: TurnRecord | None
    waiting: list[TurnRecord]


class Turns:
    """The turns of one lane. Every method raises RedisAway when Redis does not answer."""

    def __init__(self, redis: Redis, lifetimes: Lifetimes, lane: str = keys.LANE) -> None:
        self._redis = redis
        self._lifetimes = lifetimes
        self._lane = lane
        self._admit = scripts.load(redis, "admit")
        self._cancel = scripts.load(redis, "ending", "cancel")
        self._read = scripts.load(redis, "read")
        self._queue = scripts.load(redis, "queue")

    async def admit(self, new: NewTurn, *, limit: int, default_agent: str) -> Admission:
        """Accepts a turn, or raises one of Refused."""
        first_chunk = Queued(turn_id=new.turn_id, metadata=Place(position=0))
        with redis_errors():
            answer = await self._admit(
                keys=self._admission_keys(new),
                args=[
                    *(new.turn_id, limit, new.agent, default_agent, new.body_hash),
                    *(jobs.encode_job(new.turn_id), chunks.encode(first_chunk)),
                    new.thread_id,
                    *("request", msgspec.json.encode(new.request)),
                    *("idempotency_key", new.idempotency_key),
                    *("retry_of", new.retry_of),
                ],
            )
        return _admission(new, answer[0], *answer[1:])

    def _admission_keys(self, new: NewTurn) -> list[str]:
        return [
            keys.queue(self._lane),
            keys.running(self._lane),
            keys.turn(new.turn_id),
            keys.job(new.turn_id),
            keys.thread(new.thread_id),
            keys.idempotency(new.idempotency_key),
            keys.log(new.turn_id),
            keys.control(self._lane),
            keys.quarantined(self._lane),
        ]

    async def read(self, turn_id: str) -> TurnRecord:
        """The turn with its place in the queue; raises UnknownTurn."""
        with redis_errors():
            flat, place = await self._read(
                keys=[keys.turn(turn_id), keys.queue(self._lane), keys.running(self._lane)],
                args=[turn_id],
            )
        if not flat:
            raise UnknownTurn(f"No turn {turn_id} is known.")
        return parse_record(flat, place)

    async def thread_agent(self, thread_id: str) -> str | None:
        """The agent that the thread keeps, as long as Redis knows the thread."""
        client = cast(Any, self._redis)  # redis-py types a hash for two kinds of client
        with redis_errors():
            agent: bytes | None = await client.hget(keys.thread(thread_id), "agent")
        return agent.decode() if agent else None

    async def queue(self) -> QueueSnapshot:
        """The running turn and all that wait."""
        with redis_errors():
            current, *waiting = await self._queue(
                keys=[keys.queue(self._lane), keys.running(self._lane)], args=[keys.TURN_PREFIX]
            )
        ahead = 1 if current else 0
        records = [_read(flat, ahead + place) for place, flat in enumerate(waiting)]
        return QueueSnapshot(
            _read(current, 0) if current else None,
            [record for record in records if record is not None],
        )

    async def cancel(self, turn: TurnRecord, chunk: Cancelled) -> Cancellation:
        """Ends a turn that never started with `chunk`; of one that did the worker is told."""
        with redis_errors():
            status, ended_now = await self._cancel(
                keys=[
                    *scripts.ending_keys(turn, self._lane),
                    keys.control(self._lane),
                    keys.unrecorded(self._lane),
                ],
                args=[
                    turn.turn_id,
                    chunks.encode(chunk),
                    self._lifetimes.chunks_s,
                    self._lifetimes.turn_s,
                ],
            )
        if not status:
            raise UnknownTurn(f"No turn {turn.turn_id} is known.")
        return Cancellation(status.decode(), bool(ended_now))


def _admission(new: NewTurn, outcome: bytes, *details: Any) -> Admission:
    match outcome:
        case b"admitted":
            flat, ahead = details
            return Admission(new.turn_id, parse_record(flat, ahead))
        case b"repeated":
            return Admission(details[0].decode(), None)
        case b"conflict":
            raise IdempotencyConflict("This idempotency key was used before with another body.")
        case b"quarantined":
            raise Quarantined(
                f"Thread {new.thread_id} could not be restored after a turn, and takes no more "
                "until a restart of the worker restores it or it is deleted."
            )
        case b"agent_mismatch":
            raise AgentMismatch(f"Thread {new.thread_id} belongs to agent {details[0].decode()!r}.")
        case b"full":
            raise QueueFull(f"The queue is full, with {details[0].decode()} waiting.")
        case _:
            raise AssertionError(f"admit.lua answered {outcome!r}")


def _read(flat: list[bytes], place: int) -> TurnRecord | None:
    try:
        return parse_record(flat, place)
    except (KeyError, ValueError, msgspec.MsgspecError) as error:
        log.error("The record of a turn cannot be read: %s: %s", type(error).__name__, error)
        return None
