"""The transitions of a turn that the worker makes, fenced by the number of its claim."""

from typing import cast
from uuid import uuid4

from shared import characters, chunks, keys, scripts
from shared.chunks import Chunk, Terminal
from shared.errors import Fenced
from shared.record import Failure, Lifetimes, TurnRecord, parse_record
from shared.redis import Redis, redis_errors


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

    async def publish(self, turn: TurnRecord, seq: int, chunk: Chunk) -> int:
        """Logs and tells one chunk; answers the number of the last one that Redis holds.

        Sending a chunk again does nothing; a number ahead of its turn is not taken. Raises Fenced.
        """
        with redis_errors():
            last = await self._publish(
                keys=[keys.turn(turn.turn_id), keys.log(turn.turn_id), keys.channel(turn.turn_id)],
                args=[turn.claim, seq, chunks.type_of(chunk), chunks.encode(chunk)],
            )
        if last < 0:
            raise _fenced(turn)
        return last

    async def finish(self, turn: TurnRecord, chunk: Terminal, failure: Failure | None) -> None:
        """Writes the terminal status and chunk, once; raises Fenced."""
        fields: list[str | bytes] = ["usage", characters.encode(chunk.metadata.usage)]
        if failure:
            fields += ["error", characters.encode(failure)]
        with redis_errors():
            answer = await self._finish(
                keys=scripts.ending_keys(turn, self._lane),
                args=[
                    turn.turn_id,
                    turn.claim,
                    chunks.type_of(chunk),
                    chunks.encode(chunk),
                    self._lifetimes.chunks_s,
                    self._lifetimes.turn_s,
                    *fields,
                ],
            )
        if answer != b"ended":
            raise _fenced(turn)


def _fenced(turn: TurnRecord) -> Fenced:
    return Fenced(f"Claim {turn.claim} of turn {turn.turn_id} is not the last one.")
