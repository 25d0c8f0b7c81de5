"""Runners of turns on graphs of one node, and what their turns have come to."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs]

from shared.chunks import Done, Error, Terminal, parse
from shared.claims import Claims
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import Node, graph_of
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES, accept
from tests.until import until
from worker.checkpoints import TurnSaver
from worker.memory import Memory
from worker.settings import WorkerSettings
from worker.turns import TurnRunner

RunnerOf = Callable[..., TurnRunner]


async def say_hi(_: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("hi")]}


async def wait(_: MessagesState) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


class Held:
    """An agent that waits until it is let go, and then says something."""

    def __init__(self) -> None:
        self.begun = 0
        self.free = asyncio.Event()

    async def answer(self, _: MessagesState) -> dict[str, Any]:
        self.begun += 1
        await self.free.wait()
        return {"messages": [AIMessage("hi")]}


def runners(redis: Redis, saver: TurnSaver) -> RunnerOf:
    """Makes a runner whose agent has one node, each with claims of its own."""

    def make(
        node: Node, *, again: bool = False, memory: Memory | None = None, **settings: Any
    ) -> TurnRunner:
        agents = {"chat": graph_of(node, saver, again=again)}
        memory = memory or Memory(saver, agents)
        return TurnRunner(Claims(redis, LIFETIMES), memory, agents, WorkerSettings(**settings))

    return make


async def begin(runner: TurnRunner, turn: TurnRecord, held: Held) -> asyncio.Task[None]:
    """A run whose agent is held."""
    before = held.begun
    running = asyncio.create_task(runner.run(turn.turn_id))
    await until(lambda: held.begun > before)
    return running


def after(
    monkeypatch: pytest.MonkeyPatch, memory: Memory, name: str, also: Callable[[], Awaitable[Any]]
) -> None:
    """Has `also` happen right after the memory has done `name`."""
    whole = getattr(memory, name)

    async def do(*args: Any) -> Any:
        answer = await whole(*args)
        await also()
        return answer

    monkeypatch.setattr(memory, name, do)


@asynccontextmanager
async def running(
    turns: Turns, runner: TurnRunner
) -> AsyncGenerator[tuple[TurnRecord, asyncio.Task[None]]]:
    """A turn that the runner has begun; its task ends before the block does."""
    turn = await accept(turns)
    task = asyncio.create_task(runner.run(turn.turn_id))
    while (turn := await turns.read(turn.turn_id)).status != "running":
        await asyncio.sleep(0.002)
    yield turn, task
    await asyncio.wait_for(asyncio.wait({task}), 30)


async def end_of(turns: Turns, valkey: RedisSeen, turn_id: str) -> Terminal:
    """The turn's last chunk, after checking that it is its only terminal one."""
    log = [parse(chunk_json)[1] for chunk_json in told(valkey, turn_id)]
    assert [chunk.completed for chunk in log].count(True) == 1
    last = log[-1]
    assert isinstance(last, Done | Error)
    record = await turns.read(turn_id)
    assert record.ended
    if isinstance(last, Error):
        assert record.error
        assert (record.error.code, record.error.message) == (last.metadata.code, last.content)
    return last


def told(valkey: RedisSeen, turn_id: str) -> list[bytes]:
    """The turn's log as a follower would be sent it."""
    return [
        json.dumps({**chunk, "seq": int(chunk["id"].partition("-")[0])}).encode()
        for chunk in log_of(valkey, turn_id)
    ]
