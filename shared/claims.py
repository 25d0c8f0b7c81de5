"""The transitions of a turn that the worker makes, fenced by the number of its claim."""

from typing import Any, Literal, NamedTuple, cast
from uuid import uuid4

from shared import characters, chunks, jobs, keys, scripts, stream
from shared.chunks import Cancelled, Error, Place, Queued, Terminal
from shared.errors import Fenced
from shared.record import Failure, Lifetimes, Status, TurnRecord, parse_record, write_started
from shared.redis import Redis, redis_errors
from shared.stream import Entry

State = Literal["running", "ending", "queued"]
"""Of a turn that has started: it holds the slot, has only its end to be told, or waits again."""

REVIVED: dict[State, Status] = {"running": "running", "ending": "running", "queued": "queued"}


class Published(NamedTuple):
    """`last`: number of the last chunk that Redis holds; None when it has forgotten the claim, and
    wants `revive`. `cancelling`: the turn is to be undone.
    """

    last: int | None
    cancelling: bool = False


class Told(NamedTuple):
    """What became of a transition, and the number of the last chunk that Redis holds.

    `behind`: chunks are missing that come before. `forgotten`: Redis does not know of the claim,
    and wants `revive`. `cancelling`: a person wants the turn undone, so it cannot wait again.
    """

    state: Literal["ended", "queued", "cancelling", "behind", "forgotten"]
    last: int


class Claims:
    """Takes, tells and ends the turns of one lane. Every method may raise RedisAway."""

    mark = ""
    """Of the Redis that has been told all it must know (shared/lane.py)."""

    def __init__(self, redis: Redis, lifetimes: Lifetimes, lane: str = keys.LANE) -> None:
        self._redis = redis
        self._claimant = uuid4().hex
        self._lifetimes = lifetimes
        self._lane = lane
        self._claim = scripts.load(redis, "clock", "claim")
        self._publish = scripts.load(redis, "clock", "ended", "ownership", "publish")
        self._finish = scripts.load(redis, "clock", "ended", "ownership", "ending", "finish")
        self._requeue = scripts.load(redis, "clock", "ended", "ownership", "place", "requeue")
        self._revive = scripts.load(redis, "ended", "queueing", "revive")

    async def claim(self, turn_id: str, run_id: str = "") -> TurnRecord | None:
        """Takes a turn for the slot, once however often it is asked; None when there is none.

        `run_id`: of this run, unless it is the turn's first.
        """
        with redis_errors():
            flat = await self._claim(
                keys=[keys.turn(turn_id), keys.running(self._lane)],
                args=[turn_id, self._claimant, run_id or str(uuid4())],
            )
        return parse_record(flat, 0) if flat else None

    async def status(self, turn_id: str) -> str | None:
        """The turn's status; None when it is unknown."""
        client = cast(Any, self._redis)  # redis-py types a hash for two kinds of client
        with redis_errors():
            status: bytes | None = await client.hget(keys.turn(turn_id), "status")
        return status.decode() if status else None

    async def read_log(self, turn_id: str) -> list[Entry]:
        """The chunks that Redis holds of a turn."""
        return [entry async for entry in stream.read(self._redis, turn_id, 0)]

    async def publish(self, turn: TurnRecord, entry: Entry) -> Published:
        """Logs and tells one chunk, and hears in return whether to go on.

        Sending a chunk again does nothing; a number ahead of its turn is not taken. Raises Fenced.
        """
        with redis_errors():
            answer, last, cancelling = await self._publish(
                keys=[keys.turn(turn.turn_id), keys.log(turn.turn_id), keys.channel(turn.turn_id)],
                args=[turn.claim, entry.seq, entry.type, entry.body],
            )
        if answer == b"fenced":
            raise _fenced(turn)
        return Published(None if answer == b"forgotten" else last, bool(cancelling))

    async def finish(
        self, turn: TurnRecord, seq: int, chunk: Terminal, failure: Failure | None
    ) -> Told:
        """Writes the terminal status and chunk, number `seq`, once; raises Fenced.

        A thread whose turn ends with `rollback_failed` takes no more turns.
        """
        gave_up = failure is not None and failure.code == "rollback_failed"
        with redis_errors():
            answer = await self._finish(
                keys=[*scripts.ending_keys(turn, self._lane), keys.quarantined(self._lane)],
                args=[
                    *(turn.turn_id, turn.claim, seq),
                    *(chunks.type_of(chunk), chunks.encode(chunk)),
                    *(self._lifetimes.chunks_s, self._lifetimes.turn_s),
                    turn.thread_id if gave_up else "",
                    turn.time_after(chunk.metadata.elapsed_s),
                    *_ending_fields(chunk, failure),
                ],
            )
        return _told(turn, answer)

    async def requeue(self, turn: TurnRecord, seq: int) -> Told:
        """Has the turn wait again in its old place, with a `queued` chunk of number `seq`.

        Raises Fenced.
        """
        with redis_errors():
            answer = await self._requeue(
                keys=[
                    *(keys.turn(turn.turn_id), keys.queue(self._lane), keys.running(self._lane)),
                    *(keys.log(turn.turn_id), keys.channel(turn.turn_id)),
                ],
                args=[turn.turn_id, turn.claim, seq, _first_chunk(turn)],
            )
        return _told(turn, answer)

    async def let_wait(self, turn: TurnRecord) -> Told:
        """Has a turn wait again, with what was told of it, whose worker has not said so itself.

        Raises Fenced.
        """
        told = await self.requeue(turn, turn.seq + 1)
        while told.state == "behind":
            told = await self.requeue(turn, told.last + 1)
        return told

    async def revive(self, turn: TurnRecord, state: State) -> bool:
        """Has Redis know again of a turn that has started; False when it does already.

        Of its chunks only a first one is there again, which says `queued`.
        """
        key, digest = turn.idempotency_key, turn.body_hash
        with redis_errors():
            return bool(
                await self._revive(
                    keys=[
                        *(keys.turn(turn.turn_id), keys.queue(self._lane)),
                        *(keys.running(self._lane), keys.log(turn.turn_id)),
                        *(keys.channel(turn.turn_id), keys.job(turn.turn_id)),
                        *(keys.thread(turn.thread_id), keys.idempotency(key)),
                    ],
                    args=[
                        *(turn.turn_id, turn.claim),
                        *(REVIVED[state], "1" if state == "running" else "", turn.agent),
                        *(jobs.encode_job(turn.turn_id), _first_chunk(turn)),
                        f"{turn.turn_id} {digest}" if digest else "",
                        *("claimant", self._claimant),
                        *write_started(turn),
                    ],
                )
            )


def _first_chunk(turn: TurnRecord) -> bytes:
    return chunks.encode(Queued(turn_id=turn.turn_id, metadata=Place(position=0)))


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


def _told(turn: TurnRecord, answer: tuple[bytes, int]) -> Told:
    state, last = answer
    if state == b"fenced":
        raise _fenced(turn)
    return Told(cast(Any, state.decode()), last)


def _fenced(turn: TurnRecord) -> Fenced:
    return Fenced(f"Claim {turn.claim} of turn {turn.turn_id} is not the last one.")
