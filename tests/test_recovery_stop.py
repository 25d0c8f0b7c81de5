"""A worker that has stopped in order is none that died, whatever Redis has heard of it."""

import pytest

from shared import keys
from shared.claims import Claims
from shared.lane import Lane
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import put
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES, accept, claim, entry, start, text
from worker.checkpoints import TurnSaver
from worker.memory import Memory
from worker.recovery import Recovery


@pytest.fixture
def memory(saver: TurnSaver) -> Memory:
    return Memory(saver, {})


@pytest.fixture
def recovery(lane: Lane, redis: Redis, memory: Memory) -> Recovery:
    """The next worker's."""
    return Recovery(lane, Claims(redis, LIFETIMES), memory)


@pytest.fixture
async def turn(
    turns: Turns, claims: Claims, lane: Lane, saver: TurnSaver, memory: Memory, recovery: Recovery
) -> TurnRecord:
    """A turn that has told and put something, and whose worker is gone."""
    await recovery.start()
    turn, mark = await start(turns, claims), await lane.read_mark()
    assert mark
    await memory.begin(turn, mark.name)
    await put(saver, turn_id=turn.turn_id, thread_id=turn.thread_id)
    memory.gate.close()
    await claims.publish(turn, entry(2, text(turn, "hi")))
    return turn


async def test_it_is_noted_in_the_database_before_redis_hears_of_it(
    turns: Turns,
    redis: Redis,
    memory: Memory,
    recovery: Recovery,
    valkey: RedisSeen,
    turn: TurnRecord,
) -> None:
    await memory.let_go(turn, 3)
    behind = await accept(turns)
    await recovery.start()
    waits = await turns.read(turn.turn_id)
    assert (waits.status, waits.attempt, waits.position) == ("queued", 1, 0)
    assert [each.turn_id for each in (await turns.queue()).waiting] == [
        turn.turn_id,
        behind.turn_id,
    ]
    types = [chunk["type"] for chunk in log_of(valkey, turn.turn_id)]
    assert types == ["queued", "text", "queued"]
    again = await claim(Claims(redis, LIFETIMES), turn)
    assert (again.attempt, again.claim) == (1, 2)


async def test_what_redis_has_lost_of_it_is_stood_in_for_before(
    memory: Memory, recovery: Recovery, valkey: RedisSeen, turn: TurnRecord
) -> None:
    await memory.let_go(turn, 4)
    valkey.set(keys.known(), "the-process-before told")  # which had two chunks more
    await recovery.start()
    types = [chunk["type"] for chunk in log_of(valkey, turn.turn_id)]
    assert types == ["queued", "text", "rewind", "rewind", "rewind", "queued"]


async def test_one_that_is_to_be_cancelled_stays_so(
    turns: Turns, memory: Memory, recovery: Recovery, turn: TurnRecord
) -> None:
    await memory.let_go(turn, 3)
    await turns.cancel(turn.turn_id)
    await recovery.start()
    assert (await turns.read(turn.turn_id)).status == "cancelling"


async def test_a_later_claim_that_died_counts(
    turns: Turns, redis: Redis, memory: Memory, recovery: Recovery, turn: TurnRecord
) -> None:
    await memory.let_go(turn, 3)
    await recovery.start()
    await claim(Claims(redis, LIFETIMES), turn)  # and dies before it has begun
    await recovery.start()
    assert (await turns.read(turn.turn_id)).status == "running"
    assert (await claim(Claims(redis, LIFETIMES), turn)).attempt == 2


async def test_a_redis_that_is_emptied_while_it_is_told_is_told_again(
    turns: Turns,
    memory: Memory,
    recovery: Recovery,
    valkey: RedisSeen,
    turn: TurnRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, asked = memory.agents_of_threads, 0

    async def empty_once() -> dict[str, str]:
        nonlocal asked
        asked += 1
        if asked == 1:
            valkey.flushall()
        return await whole()

    monkeypatch.setattr(memory, "agents_of_threads", empty_once)
    await recovery.start()
    assert (await turns.read(turn.turn_id)).status == "queued"
    assert valkey.zscore(keys.queue(), turn.turn_id)
    assert asked == 2
