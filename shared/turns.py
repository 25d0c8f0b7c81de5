"""The transitions of a turn that the API makes, each one script, so that Redis decides races."""

import logging
import time
from typing import Any, NamedTuple, cast

import msgspec

from shared import chunks, jobs, keys, scripts
from shared.admission import Admission, NewTurn, parse_admission
from shared.chunks import Cancelled, Place, Queued
from shared.errors import UnknownTurn
from shared.record import Lifetimes, TurnRecord, parse_record
from shared.redis import Redis, redis_errors
from shared.summary import CancelSummary

log = logging.getLogger(__name__)


class Cancellation(NamedTuple):
    """The turn as it is now. `ended_before`: there was nothing left to cancel."""

    turn: TurnRecord
    ended_before: bool


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
        self._cancel = scripts.load(redis, "ended", "place", "cancel")
        self._withdraw = scripts.load(redis, "clock", "ending", "withdraw")
        self._read = scripts.load(redis, "place", "read")
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
        return parse_admission(new, answer)

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
        return _known(turn_id, flat, place)

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

    async def cancel(self, turn_id: str) -> Cancellation:
        """Ends a turn that never started, has its worker undo one that did; raises UnknownTurn."""
        while True:
            # One that has started comes first, as a model works for it: one script, and it is told.
            turn = await self._cancel_started(turn_id)
            if turn.status != "queued":
                return Cancellation(turn, ended_before=turn.ended)
            if withdrawn := await self._withdraw_waiting(turn):
                return Cancellation(withdrawn, ended_before=False)

    async def _cancel_started(self, turn_id: str) -> TurnRecord:
        with redis_errors():
            flat, place = await self._cancel(
                keys=[
                    keys.turn(turn_id),
                    keys.queue(self._lane),
                    keys.running(self._lane),
                    keys.control(self._lane),
                ],
                args=[turn_id],
            )
        return _known(turn_id, flat, place)

    async def _withdraw_waiting(self, turn: TurnRecord) -> TurnRecord | None:
        """None when it has started or ended meanwhile."""
        waited_s = turn.age_s(time.time())
        summary = CancelSummary(elapsed_s=waited_s, queued_s=waited_s, rolled_back_messages=0)
        with redis_errors():
            flat = await self._withdraw(
                keys=[
                    *scripts.ending_keys(turn, self._lane),
                    keys.control(self._lane),
                    keys.unrecorded(self._lane),
                ],
                args=[
                    turn.turn_id,
                    chunks.encode(Cancelled(turn_id=turn.turn_id, metadata=summary)),
                    self._lifetimes.chunks_s,
                    self._lifetimes.turn_s,
                ],
            )
        return parse_record(flat) if flat else None


def _known(turn_id: str, flat: list[bytes], place: int) -> TurnRecord:
    if not flat:
        raise UnknownTurn(f"No turn {turn_id} is known.")
    return parse_record(flat, place)


def _read(flat: list[bytes], place: int) -> TurnRecord | None:
    try:
        return parse_record(flat, place)
    except (KeyError, ValueError, msgspec.MsgspecError) as error:
        log.error("The record of a turn cannot be read: %s: %s", type(error).__name__, error)
        return None
