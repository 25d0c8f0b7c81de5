"""The transitions of a turn that the worker makes, fenced by the number of its claim."""

from collections.abc import Collection
from typing import Any, NamedTuple, cast
from uuid import uuid4

from shared import characters, chunks, keys, scripts
from shared.chunks import Cancelled, Chunk, Error, Terminal
from shared.errors import Fenced
from shared.record import Failure, Lifetimes, TurnRecord, parse_record
from shared.redis import Redis, redis_errors


class Published(NamedTuple):
    """`last`: number of the last chunk that Redis holds. `cancelling`: the turn is to be undone."""

    last: int
    cancelling: bool


class Claims:
    """Takes, tells and ends the turns of one lane. Every method may raise RedisAway."""

    def __init__(self, redis: Redis, lifetimes: Lifetimes, lane: str = keys.LANE) -> None:
        self._redis = redis
        self._claimant = uuid4().hex
        self._lifetimes = lifetimes
        self._lane = lane
        self._claim = scripts.load(redis, "claim")
        self._publish = scripts.load(redis, "publish")
        self._finish = scripts.load(redis, "ending", "finish")

    async def left_running(self) -> str | None:
        """The turn that holds the slot: before the first claim, one that a dead worker left."""
        with redis_errors():
            left = cast(bytes | None, await self._redis.get(keys.running(self._lane)))
        return left.decode() if left else None

    async def claim(self, turn_id: str) -> TurnRecord | None:
        """Takes a turn for the slot, once however often it is asked; None when there is none."""
        with redis_errors():
            flat = await self._claim(
                keys=[keys.turn(turn_id), keys.running(self._lane)],
                args=[turn_id, self._claimant],
            )
        return parse_record(flat, 0) if flat else None

    async def status(self, turn_id: str) -> str | None:
        """The turn's status; None when it is unknown."""
        client = cast(Any, self._redis)  # redis-py types a hash for two kinds of client
        with redis_errors():
            status: bytes | None = await client.hget(keys.turn(turn_id), "status")
        return status.decode() if status else None

    async def publish(self, turn: TurnRecord, seq: int, chunk: Chunk) -> Published:
        """Logs and tells one chunk, and hears in return whether to go on.

        Sending a chunk again does nothing; a number ahead of its turn is not taken. Raises Fenced.
        """
        with redis_errors():
            last, cancelling = await self._publish(
                keys=[keys.turn(turn.turn_id), keys.log(turn.turn_id), keys.channel(turn.turn_id)],
                args=[turn.claim, seq, chunks.type_of(chunk), chunks.encode(chunk)],
            )
        if last < 0:
            raise _fenced(turn)
        return Published(last, bool(cancelling))

    async def finish(self, turn: TurnRecord, chunk: Terminal, failure: Failure | None) -> None:
        """Writes the terminal status and chunk, once; raises Fenced.

        A thread whose turn ends with `rollback_failed` takes no more turns.
        """
        gave_up = failure is not None and failure.code == "rollback_failed"
        with redis_errors():
            answer = await self._finish(
                keys=[*scripts.ending_keys(turn, self._lane), keys.quarantined(self._lane)],
                args=[
                    turn.turn_id,
                    turn.claim,
                    chunks.type_of(chunk),
                    chunks.encode(chunk),
                    self._lifetimes.chunks_s,
                    self._lifetimes.turn_s,
                    turn.thread_id if gave_up else "",
                    *_ending_fields(chunk, failure),
                ],
            )
        if answer != b"ended":
            raise _fenced(turn)

    async def set_quarantined(self, thread_ids: Collection[str]) -> None:
        """Says which threads take no turns: these and no others."""
        client = cast(Any, self._redis)  # redis-py types a set for two kinds of client
        with redis_errors():
            async with client.pipeline(transaction=True) as together:
                together.delete(keys.quarantined(self._lane))
                if thread_ids:
                    together.sadd(keys.quarantined(self._lane), *thread_ids)
                await together.execute()

    async def next_unrecorded(self) -> bytes | None:
        """The oldest turn that ended without the worker; listed until `drop_unrecorded`."""
        client = cast(Any, self._redis)  # redis-py types a list for two kinds of client
        with redis_errors():
            return await client.lindex(keys.unrecorded(self._lane), 0)

    async def drop_unrecorded(self, record: bytes) -> None:
        """This one is in the ledger; dropping it again does nothing."""
        client = cast(Any, self._redis)
        with redis_errors():
            await client.lrem(keys.unrecorded(self._lane), 1, record)


def _ending_fields(chunk: Terminal, failure: Failure | None) -> list[str | bytes | int]:
    fields: list[str | bytes | int] = ["usage", characters.encode(chunk.metadata.usage)]
    if failure:
        fields += ["error", characters.encode(failure)]
    match chunk:
        case Error() | Cancelled() if chunk.metadata.rolled_back_messages is not None:
            fields += ["rolled_back_messages", chunk.metadata.rolled_back_messages]
        case _:
            pass
    return fields


def _fenced(turn: TurnRecord) -> Fenced:
    return Fenced(f"Claim {turn.claim} of turn {turn.turn_id} is not the last one.")
