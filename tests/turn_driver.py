"""Drives turns as the worker does, without one."""

from shared.claims import Claims
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.turns_made import LIFETIMES, accept, claim, done, entry, text


class TurnDriver:
    """Queues, starts, tells and ends turns."""

    def __init__(self, redis: Redis) -> None:
        self.turns = Turns(redis, LIFETIMES)
        self.claims = Claims(redis, LIFETIMES)

    async def queue(self) -> str:
        """Queues a turn and answers its id."""
        return (await accept(self.turns)).turn_id

    async def start(self, turn_id: str) -> TurnRecord:
        """Takes the turn for the slot."""
        return await claim(self.claims, await self.turns.read(turn_id))

    async def say(self, turn: TurnRecord, first: int, count: int = 1) -> None:
        """Publishes `count` text chunks, numbered from `first`."""
        for seq in range(first, first + count):
            told = await self.claims.publish(turn, entry(seq, text(turn, f"{seq} ")))
            assert told.last == seq

    async def finish(self, turn: TurnRecord) -> None:
        """Publishes the terminal chunk."""
        last = (await self.turns.read(turn.turn_id)).seq
        await self.claims.finish(turn, last + 1, done(turn), None)

    async def run(self, turn_id: str, count: int = 1) -> None:
        """A whole turn: `count` text chunks between the first chunk and the last."""
        turn = await self.start(turn_id)
        await self.say(turn, 2, count)
        await self.finish(turn)
