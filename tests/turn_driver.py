"""Drives turns as the worker does, without one."""

from uuid import uuid4

from shared.chunks import Done, Source, Summary, Text
from shared.claims import Claims
from shared.record import TurnRecord, TurnRequest
from shared.redis import Redis
from shared.scripts import Lifetimes
from shared.turns import NewTurn, Turns

LIFETIMES = Lifetimes(chunks_s=60, turn_s=120)


class TurnDriver:
    """Queues, starts, tells and ends turns."""

    def __init__(self, redis: Redis) -> None:
        self.turns = Turns(redis, LIFETIMES)
        self.claims = Claims(redis, LIFETIMES)

    async def queue(self) -> str:
        """Queues a turn and answers its id."""
        turn_id = str(uuid4())
        new = NewTurn(
            turn_id=turn_id, thread_id="t", agent="chat", request=TurnRequest(text="Hello")
        )
        await self.turns.admit(new, limit=100, default_agent="chat")
        return turn_id

    async def start(self, turn_id: str) -> TurnRecord:
        """Takes the turn for the slot."""
        turn = await self.claims.claim(turn_id)
        assert turn
        return turn

    async def say(self, turn: TurnRecord, first: int, count: int = 1) -> None:
        """Publishes `count` text chunks, numbered from `first`."""
        for seq in range(first, first + count):
            chunk = Text(turn_id=turn.turn_id, content=f"{seq} ", metadata=Source("m"))
            assert await self.claims.publish(turn, seq, chunk) == seq

    async def finish(self, turn: TurnRecord) -> None:
        """Publishes the terminal chunk."""
        summary = Summary(elapsed_s=1, queued_s=0)
        await self.claims.finish(turn, Done(turn_id=turn.turn_id, metadata=summary), None)
