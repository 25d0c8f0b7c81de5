"""A Redis that has been emptied while its worker goes on is told again what the database knows."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from shared import keys
from shared.claims import Claims
from shared.lane import Lane
from shared.record import TurnRecord
from shared.turns import Turns
from tests.memory import chain_of, put, rows
from tests.redis_seen import RedisSeen, everlasting, log_of
from tests.runners import Held, begin, say_hi
from tests.turns_made import accept, entry, start, text
from tests.until import until
from worker.checkpoints import TurnSaver
from worker.errors import BrokenOff
from worker.graph import Graph
from worker.memory import Memory
from worker.recovery import Recovery
from worker.settings import WorkerSettings
from worker.turns import TurnRunner


def nobody() -> str:
    return ""


def only(turn: TurnRecord) -> Callable[[], str]:
    return lambda: turn.turn_id


Agents = dict[str, Graph]


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def agents(saver: TurnSaver, held: Held) -> Agents:
    """One that says something twice, waits until it is let go, and says it again."""
    return {"chat": chain_of(saver, say_hi, say_hi, held.answer)}


@pytest.fixture
def memory(saver: TurnSaver, agents: Agents) -> Memory:
    return Memory(saver, agents)


@pytest.fixture
async def runner(claims: Claims, memory: Memory, agents: Agents) -> TurnRunner:
    return TurnRunner(claims, memory, agents, WorkerSettings())


@pytest.fixture
async def recovery(lane: Lane, claims: Claims, memory: Memory) -> Recovery:
    """Of a worker that has started, so that Redis knows what it must."""
    recovery = Recovery(lane, claims, memory)
    await recovery.start()
    return recovery


async def leave(saver: TurnSaver, memory: Memory, turn: TurnRecord) -> TurnRecord:
    """A turn that has put something, and which is not over."""
    await memory.begin(turn)
    await put(saver, turn_id=turn.turn_id, thread_id=turn.thread_id)
    memory.gate.close()
    return turn


Begin = Callable[[TurnRecord], Awaitable[asyncio.Task[None]]]


@pytest.fixture
def begin_speaking(runner: TurnRunner, memory: Memory, held: Held, valkey: RedisSeen) -> Begin:
    """Makes a run that is held, of which two messages were told and are in the database."""

    async def make(turn: TurnRecord) -> asyncio.Task[None]:
        running = await begin(runner, turn, held)
        await until(lambda: types(valkey, turn).count("text") == 2)
        # LangGraph writes while it goes on.
        while len((await memory.standing(turn)).said) < 2:
            await asyncio.sleep(0)
        return running

    return make


def types(valkey: RedisSeen, turn: TurnRecord) -> list[str]:
    """Of the turn's chunks, whose numbers have no gap."""
    log = log_of(valkey, turn.turn_id)
    assert [chunk["id"] for chunk in log] == [f"{seq}-0" for seq in range(1, len(log) + 1)]
    return [chunk["type"] for chunk in log]


async def test_a_running_turn_ends_with_all_of_its_chunks(
    turns: Turns,
    runner: TurnRunner,
    recovery: Recovery,
    held: Held,
    valkey: RedisSeen,
    begin_speaking: Begin,
) -> None:
    turn = await accept(turns, idempotency_key="key", body_hash="hash")
    running = await begin_speaking(turn)
    record, log = await turns.read(turn.turn_id), log_of(valkey, turn.turn_id)
    valkey.flushall()
    await recovery.refresh(runner.held_id)
    assert await turns.read(turn.turn_id) == replace(record, seq=1)
    assert valkey.get(keys.running()) == turn.turn_id.encode()
    assert valkey.exists(keys.idempotency("key"), keys.job(turn.turn_id)) == 2
    runner.probe()
    await until(lambda: log_of(valkey, turn.turn_id) == log)
    held.free.set()
    await running
    assert types(valkey, turn) == ["queued", "text", "text", "text", "done"]
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.attempt, ended.claim) == ("done", 1, 1)
    assert everlasting(valkey) == {keys.known()}


async def test_it_can_be_cancelled(
    turns: Turns, runner: TurnRunner, recovery: Recovery, valkey: RedisSeen, begin_speaking: Begin
) -> None:
    running = await begin_speaking(turn := await accept(turns))
    valkey.flushall()
    await recovery.refresh(runner.held_id)
    assert (await turns.cancel(turn.turn_id)).turn.status == "cancelling"
    runner.probe()
    await running
    assert (await turns.read(turn.turn_id)).status == "cancelled"
    assert types(valkey, turn) == ["queued", "text", "text", "cancelled"]


async def test_a_turn_that_waits_again_does_so_still(
    turns: Turns,
    runner: TurnRunner,
    claims: Claims,
    memory: Memory,
    agents: Agents,
    recovery: Recovery,
    held: Held,
    valkey: RedisSeen,
    begin_speaking: Begin,
) -> None:
    running = await begin_speaking(turn := await accept(turns))
    runner.stop()
    with pytest.raises(BrokenOff):
        await running
    n_told = len(log_of(valkey, turn.turn_id))
    valkey.flushall()
    behind = await accept(turns)
    await recovery.refresh(nobody)
    order = [each.turn_id for each in (turn, behind)]
    assert [each.turn_id for each in (await turns.queue()).waiting] == order
    assert (types(valkey, turn), valkey.exists(keys.running())) == (["queued"], 0)
    held.free.set()
    await TurnRunner(claims, memory, agents, WorkerSettings()).run(turn.turn_id)
    again = ["text", "text", "text", "done"]
    assert types(valkey, turn) == ["queued", *["rewind"] * n_told, *again]
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.attempt, ended.claim) == ("done", 1, 2)


async def test_of_several_turns_the_one_that_is_run_runs(
    turns: Turns,
    claims: Claims,
    saver: TurnSaver,
    memory: Memory,
    recovery: Recovery,
    valkey: RedisSeen,
) -> None:
    waits, runs = [await leave(saver, memory, await start(turns, claims)) for _ in range(2)]
    before = await rows(saver)
    valkey.flushall()
    await recovery.refresh(only(runs))
    queue = await turns.queue()
    assert queue.running
    assert queue.running.turn_id == runs.turn_id
    assert queue.waiting == [replace(waits, status="queued", attempt=2, position=1)]
    assert await rows(saver) == before


async def test_what_redis_still_knows_of_a_turn_stands(
    turns: Turns,
    claims: Claims,
    saver: TurnSaver,
    memory: Memory,
    recovery: Recovery,
    valkey: RedisSeen,
) -> None:
    turn = await leave(saver, memory, await start(turns, claims))
    await claims.publish(turn, entry(2, text(turn, "hi")))
    await turns.cancel(turn.turn_id)
    record = await turns.read(turn.turn_id)
    valkey.delete(keys.known(), keys.queue(), keys.job(turn.turn_id))
    await recovery.refresh(only(turn))
    assert await turns.read(turn.turn_id) == record
    assert types(valkey, turn) == ["queued", "text"]
    assert valkey.exists(keys.queue(), keys.job(turn.turn_id)) == 2
