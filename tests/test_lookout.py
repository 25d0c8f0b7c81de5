"""What a worker does about a Redis that has lost something, while it runs turns or none."""

from collections.abc import Awaitable, Callable

import pytest

from shared import keys
from shared.claims import Claims
from shared.lane import Lane
from shared.record import TurnRecord
from shared.turns import Turns
from tests.memory import graph_of
from tests.redis_seen import RedisSeen, log_of
from tests.runners import say_hi
from tests.turns_made import accept, done
from worker.book import KEPT_S
from worker.bookkeeper import Bookkeeper
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.graph import Graph
from worker.lookout import Lookout
from worker.memory import Memory
from worker.recovery import Recovery
from worker.settings import WorkerSettings
from worker.slot_worker import SlotWorker
from worker.turns import TurnRunner

Agents = dict[str, Graph]


@pytest.fixture
def agents(saver: TurnSaver) -> Agents:
    return {"chat": graph_of(say_hi, saver)}


class Clock:
    """Stands still until it is told to go on."""

    now = 1000.0

    def read(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(saver: TurnSaver, agents: Agents, clock: Clock) -> Memory:
    return Memory(saver, agents, clock=clock.read)


@pytest.fixture
async def runner(claims: Claims, memory: Memory, agents: Agents) -> TurnRunner:
    return TurnRunner(claims, memory, agents, WorkerSettings())


@pytest.fixture
async def look(
    lane: Lane, claims: Claims, memory: Memory, runner: TurnRunner, redis_url: str
) -> Callable[[], Awaitable[None]]:
    """Looks once, as a worker does that has started."""
    await (recovery := Recovery(lane, claims, memory)).start()
    worker = SlotWorker(redis_url, runner.run, runner.stop)
    return Lookout(worker, runner, Bookkeeper(lane, memory), recovery, memory).catch_up


async def test_the_turn_that_ended_last_is_told_again(
    turns: Turns,
    valkey: RedisSeen,
    runner: TurnRunner,
    look: Callable[[], Awaitable[None]],
) -> None:
    turn = await accept(turns)
    await runner.run(turn.turn_id)
    log = log_of(valkey, turn.turn_id)
    valkey.flushall()
    await look()
    assert log_of(valkey, turn.turn_id) == log
    assert (await turns.read(turn.turn_id)).status == "done"


async def test_no_end_is_forgotten_that_redis_may_just_have_lost(
    turns: Turns,
    valkey: RedisSeen,
    runner: TurnRunner,
    memory: Memory,
    clock: Clock,
    look: Callable[[], Awaitable[None]],
) -> None:
    turn = await accept(turns)
    await runner.run(turn.turn_id)
    clock.now += KEPT_S
    valkey.flushall()
    await look()
    assert [ending.turn.turn_id for ending in await memory.untold()] == [turn.turn_id]
    clock.now += KEPT_S
    await look()
    assert await memory.untold() == []


async def test_a_turn_that_ends_meanwhile_keeps_what_it_did(
    turns: Turns,
    claims: Claims,
    memory: Memory,
    valkey: RedisSeen,
    look: Callable[[], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = claims.status

    async def end_it(turn_id: str) -> str | None:
        await memory.commit(Ending(turn=turn, chunk=done(turn)))
        await claims.finish(turn, 2, done(turn), None)
        return await whole(turn_id)

    turn = await begun(turns, claims, memory)
    valkey.delete(keys.known())
    monkeypatch.setattr(claims, "status", end_it)
    await look()
    assert (await turns.read(turn.turn_id)).status == "done"
    assert await memory.fence_of(turn.thread_id) is None


async def test_an_end_that_could_not_be_written_is_written_later(
    turns: Turns,
    runner: TurnRunner,
    memory: Memory,
    saver: TurnSaver,
    look: Callable[[], Awaitable[None]],
) -> None:
    turn = await accept(turns)
    async with saver.gate.alone():
        await saver.conn.execute("PRAGMA query_only = 1")
    await runner.run(turn.turn_id)
    assert (await turns.read(turn.turn_id)).status == "error"
    await look()
    assert await memory.end_of(turn) is None
    async with saver.gate.alone():
        await saver.conn.execute("PRAGMA query_only = 0")
    await look()
    ended = await memory.end_of(turn)
    assert ended
    assert ended.outcome == "error"


async def begun(turns: Turns, claims: Claims, memory: Memory) -> TurnRecord:
    turn = await claims.claim((await accept(turns)).turn_id)
    assert turn
    await memory.begin(turn)
    memory.gate.close()
    return turn
