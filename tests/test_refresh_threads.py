"""A Redis that has been emptied is told again how turns have ended, and of their threads."""

from collections.abc import Callable

import pytest

from shared import keys
from shared.claims import Claims
from shared.errors import AgentMismatch, Quarantined, UnknownTurn
from shared.lane import Lane
from shared.record import TurnRecord
from shared.turns import Turns
from tests.memory import Rows, put, rows, untold
from tests.redis_seen import RedisSeen, log_of, stored
from tests.turns_made import LIFETIMES, accept, done, entry, failed, queued, start, text
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.failures import ROLLBACK_FAILED
from worker.fence import Fence
from worker.memory import Memory
from worker.recovery import Recovery

UNTOUCHED: Rows = {"checkpoints": [], "writes": []}


def nobody() -> str:
    return ""


def only(turn: TurnRecord) -> Callable[[], str]:
    return lambda: turn.turn_id


IsRun = pytest.mark.parametrize("is_run", [False, True])


@pytest.fixture
def memory(saver: TurnSaver) -> Memory:
    return Memory(saver, {}, kept_s=0)


@pytest.fixture
async def recovery(lane: Lane, claims: Claims, memory: Memory) -> Recovery:
    """Of a worker that has started, so that Redis knows what it must."""
    recovery = Recovery(lane, claims, memory)
    await recovery.start()
    return recovery


@pytest.fixture
async def turn(
    turns: Turns, claims: Claims, saver: TurnSaver, memory: Memory, recovery: Recovery
) -> TurnRecord:
    """A turn that has put something, and whose thread has its fence still."""
    turn = await start(turns, claims)
    await memory.begin(turn)
    await put(saver, turn_id=turn.turn_id, thread_id=turn.thread_id)
    memory.gate.close()
    return turn


@IsRun
async def test_an_end_is_told_unless_its_runner_is_about_to(
    turns: Turns,
    memory: Memory,
    recovery: Recovery,
    valkey: RedisSeen,
    turn: TurnRecord,
    is_run: bool,
) -> None:
    log = [entry(1, queued(turn)), entry(2, text(turn, "hi"))]
    await memory.commit(ending := Ending(turn=turn, chunk=done(turn), log=log))
    valkey.flushall()
    await recovery.refresh(only(turn) if is_run else nobody)
    if is_run:
        assert await untold(memory) == [ending]
        with pytest.raises(UnknownTurn):
            await turns.read(turn.turn_id)
    else:
        assert await untold(memory) == []
        told = [chunk["type"] for chunk in log_of(valkey, turn.turn_id)]
        assert told == ["queued", "text", "done"]


async def test_what_an_ended_turn_has_left_is_left_to_the_next_start(
    turns: Turns,
    claims: Claims,
    saver: TurnSaver,
    recovery: Recovery,
    valkey: RedisSeen,
    turn: TurnRecord,
) -> None:
    await claims.finish(turn, 2, failed(turn), None)
    before, ended = await rows(saver), await turns.read(turn.turn_id)
    valkey.delete(keys.known())
    await recovery.refresh(nobody)
    assert await rows(saver) == before
    await recovery.start()
    assert await rows(saver) == UNTOUCHED
    assert await turns.read(turn.turn_id) == ended


async def test_a_thread_keeps_its_agent(
    turns: Turns, memory: Memory, recovery: Recovery, valkey: RedisSeen, turn: TurnRecord
) -> None:
    await memory.commit(Ending(turn=turn, chunk=done(turn)))
    memory.told(turn.turn_id)
    valkey.flushall()
    await recovery.refresh(nobody)
    assert 0 < valkey.ttl(keys.thread(turn.thread_id)) <= LIFETIMES.turn_s
    with pytest.raises(AgentMismatch):
        await accept(turns, thread_id=turn.thread_id, agent="another")


async def test_a_quarantined_thread_stays_so(
    turns: Turns,
    saver: TurnSaver,
    memory: Memory,
    recovery: Recovery,
    valkey: RedisSeen,
    turn: TurnRecord,
) -> None:
    chunk = failed(turn, ROLLBACK_FAILED)
    await memory.quarantine(Ending(turn=turn, chunk=chunk, failure=ROLLBACK_FAILED))
    memory.told(turn.turn_id)
    before = await rows(saver)
    valkey.flushall()
    await recovery.refresh(nobody)
    with pytest.raises(Quarantined):
        await accept(turns, thread_id=turn.thread_id)
    assert await rows(saver) == before


async def test_a_thread_that_is_given_up_meanwhile_stays_so(
    turns: Turns,
    claims: Claims,
    memory: Memory,
    recovery: Recovery,
    valkey: RedisSeen,
    turn: TurnRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = memory.fences

    async def read_before() -> list[Fence]:
        found = await whole()
        if not (await turns.read(turn.turn_id)).ended:
            await claims.finish(turn, 2, failed(turn, ROLLBACK_FAILED), ROLLBACK_FAILED)
        return found

    valkey.delete(keys.known())
    monkeypatch.setattr(memory, "fences", read_before)
    await recovery.refresh(only(turn))
    with pytest.raises(Quarantined):
        await accept(turns, thread_id=turn.thread_id)


async def test_a_redis_that_knows_is_told_nothing(
    memory: Memory, recovery: Recovery, valkey: RedisSeen, turn: TurnRecord
) -> None:
    await memory.commit(Ending(turn=turn, chunk=done(turn)))
    valkey.hdel(keys.thread(turn.thread_id), "agent")
    before = stored(valkey)
    await recovery.refresh(nobody)
    assert stored(valkey) == before


async def test_it_is_told_again_when_the_database_could_not_say(
    turns: Turns,
    memory: Memory,
    recovery: Recovery,
    valkey: RedisSeen,
    turn: TurnRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse() -> None:
        raise TimeoutError

    await memory.commit(Ending(turn=turn, chunk=done(turn)))
    valkey.flushall()
    with monkeypatch.context() as patched:
        patched.setattr(memory, "agents_of_threads", refuse)
        with pytest.raises(TimeoutError):
            await recovery.refresh(nobody)
    valkey.delete(keys.thread(turn.thread_id))
    await recovery.refresh(nobody)
    assert await turns.thread_agent(turn.thread_id) == turn.agent
