"""A turn of two steps, whose worker dies or stops in the second."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]

from shared.claims import Claims
from shared.record import TurnRecord
from shared.redis import Redis
from tests.memory import Rows, chain_of
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES
from tests.until import until
from worker.checkpoints import TurnSaver
from worker.errors import BrokenOff
from worker.memory import Memory
from worker.settings import WorkerSettings
from worker.turns import TurnRunner

UNTOUCHED: Rows = {"checkpoints": [], "writes": []}


class TwoSteps:
    """Counts how often each step is taken; the second waits until it is let go."""

    def __init__(self, redis: Redis, saver: TurnSaver, valkey: RedisSeen) -> None:
        self.mark = ""
        self.firsts = 0
        self.seconds = 0
        self.free = asyncio.Event()
        self.graph = chain_of(saver, self._first, self._second)
        self.memory = Memory(saver, {"chat": self.graph})
        self._redis = redis
        self._valkey = valkey

    async def _first(self, _: MessagesState) -> dict[str, Any]:
        self.firsts += 1
        return {"messages": [AIMessage("one")]}

    async def _second(self, _: MessagesState) -> dict[str, Any]:
        self.seconds += 1
        await self.free.wait()
        return {"messages": [AIMessage("two")]}

    def worker(self, **settings: Any) -> TurnRunner:
        """One that knows nothing of those before, but for the database."""
        claims, agents = Claims(self._redis, LIFETIMES), {"chat": self.graph}
        claims.mark = self.mark
        return TurnRunner(claims, self.memory, agents, WorkerSettings(**settings))

    async def begin(self, worker: TurnRunner, turn: TurnRecord) -> asyncio.Task[None]:
        """A run that is in its second step; the first is told and in the database."""
        before = self.seconds
        running = asyncio.create_task(worker.run(turn.turn_id))
        await until(lambda: self.seconds > before and "one" in self.told(turn))
        # LangGraph writes while it goes on.
        while not (await self.memory.standing(turn)).said:
            await asyncio.sleep(0)
        return running

    def told(self, turn: TurnRecord) -> list[str]:
        """What each chunk says, or else what it is."""
        return [
            chunk["content"] or f"{chunk['type']} {chunk['metadata'].get('to_seq', '')}".strip()
            for chunk in log_of(self._valkey, turn.turn_id)
        ]


async def kill(running: asyncio.Task[None]) -> None:
    """As far as the turn can tell; tests/test_kill_points.py kills for real."""
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()


async def stop(worker: TurnRunner, running: asyncio.Task[None]) -> None:
    """In order."""
    worker.stop()
    with pytest.raises(BrokenOff):
        await running
