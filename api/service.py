"""Accepting, reading, cancelling and retrying turns."""

import asyncio
import re
import time
import uuid
from typing import NamedTuple

from uuid_utils.compat import uuid7

from api.bodies import TurnBody, digest, digest_retry, parse_turn
from api.cursor import check_cursor, is_ahead
from api.deadline import redis_deadline
from api.errors import Invalid, NotRetryable
from api.settings import ApiSettings
from shared import stream
from shared.admission import NewTurn
from shared.agents import BUILT_IN
from shared.errors import UnknownTurn
from shared.heartbeat import RENEW_S, read_heartbeat
from shared.record import Status, TurnRecord, TurnRequest
from shared.redis import Redis
from shared.turns import Cancellation, QueueSnapshot, Turns

RETOLD_S = 2 * RENEW_S
"""A worker looks every RENEW_S whether Redis has lost something."""
AGAIN_S = 0.1

IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
RETRYABLE: frozenset[Status] = frozenset({"error", "cancelled"})


class Accepted(NamedTuple):
    """`repeated`: the idempotency key was known, and the turn is the earlier one."""

    turn: TurnRecord
    repeated: bool


class TurnService:
    """What people may do with turns. Every method raises RedisAway when Redis does not answer."""

    def __init__(self, redis: Redis, settings: ApiSettings) -> None:
        self._redis = redis
        self._turns = Turns(redis, settings.lifetimes)
        self._agents = settings.agent_names
        self._default_agent = settings.DEFAULT_AGENT
        self._limit = settings.MAX_QUEUE

    async def accept(self, raw: bytes, idempotency_key: str | None) -> Accepted:
        """Queues the turn that a body asks for; raises what parse_turn and Turns.admit raise."""
        key = _check_key(idempotency_key)
        body = parse_turn(raw)
        async with redis_deadline():
            return await self._admit(
                NewTurn(
                    turn_id=str(uuid7()),
                    thread_id=body.thread_id or str(uuid.uuid4()),
                    agent=await self._choose_agent(body),
                    request=TurnRequest(text=body.text, input=body.input),
                    idempotency_key=key,
                    body_hash=digest(body) if key else "",
                )
            )

    async def retry(self, turn_id: str, idempotency_key: str | None) -> Accepted:
        """Queues a turn's input again, on its thread and for its agent.

        Raises UnknownTurn, NotRetryable and what Turns.admit raises.
        """
        key = _check_key(idempotency_key)
        async with redis_deadline():
            turn = await self._turns.read(turn_id)
            if turn.status not in RETRYABLE:
                raise NotRetryable(
                    f"The turn is {turn.status}; what failed or was cancelled can be retried."
                )
            return await self._admit(
                NewTurn(
                    turn_id=str(uuid7()),
                    thread_id=turn.thread_id,
                    agent=turn.agent,
                    request=turn.request,
                    idempotency_key=key,
                    body_hash=digest_retry(turn_id) if key else "",
                    retry_of=turn_id,
                )
            )

    async def read(self, turn_id: str) -> TurnRecord:
        """The turn with its place in the queue; raises UnknownTurn."""
        async with redis_deadline():
            return await self._turns.read(turn_id)

    async def go_on(self, turn_id: str, cursor: int) -> TurnRecord:
        """The turn, to be followed from a cursor on.

        If Redis has lost chunks that somebody has read, it takes a moment until they are made good,
        or as long as no worker is there. Raises UnknownTurn, NothingLeft and LogGone.
        """
        patience = time.monotonic() + RETOLD_S
        while True:
            over = time.monotonic() >= patience
            try:
                turn = await self.read(turn_id)
            except UnknownTurn:
                if over or not cursor:
                    raise
            else:
                is_short = is_ahead(turn, cursor)
                if over and is_short and not await self.has_worker():
                    return turn
                if over or not is_short:
                    check_cursor(turn, cursor, has_log=await self.has_log(turn_id))
                    return turn
            await asyncio.sleep(AGAIN_S)

    async def has_worker(self) -> bool:
        """A worker is alive."""
        async with redis_deadline():
            return await read_heartbeat(self._redis) is not None

    async def cancel(self, turn_id: str) -> Cancellation:
        """Ends a turn, at once or by its worker; raises UnknownTurn."""
        async with redis_deadline():
            return await self._turns.cancel(turn_id)

    async def queue(self) -> QueueSnapshot:
        """The running turn and all that wait."""
        async with redis_deadline():
            return await self._turns.queue()

    async def has_log(self, turn_id: str) -> bool:
        """The turn's chunks are still kept."""
        async with redis_deadline():
            return await stream.exists(self._redis, turn_id)

    async def _admit(self, new: NewTurn) -> Accepted:
        admission = await self._turns.admit(
            new, limit=self._limit, default_agent=self._default_agent
        )
        turn = admission.turn or await self._turns.read(admission.turn_id)
        return Accepted(turn, admission.repeated)

    async def _choose_agent(self, body: TurnBody) -> str:
        """The agent that the turn asks for, empty for the thread's own; raises Invalid.

        A turn with `input` always names it, so that it reaches no agent that takes only text.
        """
        if body.agent is not None and body.agent not in self._agents:
            raise Invalid("No agent has this name.")
        if body.input is None:
            return body.agent or ""
        agent = body.agent or await self._agent_of(body.thread_id)
        if agent in BUILT_IN and BUILT_IN[agent].takes_text:
            raise Invalid(f"Agent {agent!r} takes text, not input.")
        return agent

    async def _agent_of(self, thread_id: str | None) -> str:
        known = await self._turns.thread_agent(thread_id) if thread_id else None
        return known or self._default_agent


def _check_key(idempotency_key: str | None) -> str:
    """The key, empty for none; raises Invalid."""
    if idempotency_key is not None and not IDEMPOTENCY_KEY.fullmatch(idempotency_key):
        raise Invalid("Idempotency-Key must be 1 to 255 visible ASCII characters.")
    return idempotency_key or ""
