"""What a worker that follows one that died does with the threads and ends that it left behind."""

import pytest

from shared import keys
from shared.claims import Claims
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import OURS, Rows, put, rows
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES, accept, claim, done, start
from worker import rollback
from worker.checkpoints import TurnSaver
from worker.conclusion import Account, Outcome
from worker.ending import Ending
from worker.failures import ROLLBACK_FAILED
from worker.memory import Memory
from worker.recovery import recover
from worker.rollback import RestoreFailed
from worker.settlement import tell, undo
from worker.tally import Tally

UNTOUCHED: Rows = {"checkpoints": [], "writes": []}
LOWERED: Rows = {"open_turns": [], "fenced_checkpoints": [], "fenced_writes": [], "outbox": []}


async def fail_to_restore(*_: object) -> None:
    raise RestoreFailed("it does not fit")


async def begin(saver: TurnSaver, turn: TurnRecord) -> Memory:
    """As a worker that is killed in the middle of the turn leaves it."""
    memory = Memory(saver, {})
    await memory.begin(turn)
    await put(saver, turn_id=turn.turn_id, thread_id=turn.thread_id)
    memory.gate.close()
    return memory


async def restart(redis: Redis, saver: TurnSaver) -> None:
    await recover(Claims(redis, LIFETIMES), Memory(saver, {}))


async def outcomes(saver: TurnSaver) -> list[str]:
    """The ledger's, with the turns in order."""
    cursor = await saver.conn.execute("SELECT outcome FROM ledger ORDER BY turn_id")
    return [outcome for (outcome,) in await cursor.fetchall()]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_an_open_turn_is_undone(
    turns: Turns,
    claims: Claims,
    redis: Redis,
    valkey: RedisSeen,
    saver: TurnSaver,
    cancelled: bool,
) -> None:
    turn = await start(turns, claims)
    await begin(saver, turn)
    if cancelled:
        await turns.cancel(turn.turn_id)
    await restart(redis, saver)
    assert await rows(saver) == UNTOUCHED
    assert await rows(saver, *LOWERED) == LOWERED
    ended = await turns.read(turn.turn_id)
    assert ended.status == ("cancelled" if cancelled else "error")
    assert (ended.error.code if ended.error else None) == (None if cancelled else "worker_lost")
    assert log_of(valkey, turn.turn_id)[-1]["type"] == ended.status
    assert await outcomes(saver) == [ended.status]


async def test_a_turn_is_undone_that_redis_has_forgotten(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen, saver: TurnSaver
) -> None:
    await begin(saver, await start(turns, claims))
    valkey.flushall()
    await restart(redis, saver)
    assert await rows(saver) == UNTOUCHED
    assert await outcomes(saver) == ["error"]


async def test_an_end_is_told_that_redis_has_not_heard(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen, saver: TurnSaver
) -> None:
    turn = await start(turns, claims)
    memory = await begin(saver, turn)
    await memory.commit(Ending(turn=turn, chunk=done(turn)))
    await turns.cancel(turn.turn_id)  # too late
    await restart(redis, saver)
    assert (await turns.read(turn.turn_id)).status == "done"
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued", "done"]
    assert await rows(saver) != UNTOUCHED
    assert await rows(saver, *LOWERED) == LOWERED


async def test_an_end_is_told_once(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen, saver: TurnSaver
) -> None:
    turn = await start(turns, claims)
    memory = await begin(saver, turn)
    await memory.commit(ending := Ending(turn=turn, chunk=done(turn)))
    await claims.finish(turn, ending.chunk, None)  # and killed before the outbox is cleared
    await restart(redis, saver)
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued", "done"]
    assert await rows(saver, *LOWERED) == LOWERED


async def test_a_thread_that_could_not_be_restored_is_tried_again(
    turns: Turns,
    claims: Claims,
    redis: Redis,
    valkey: RedisSeen,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = await start(turns, claims)
    memory = await begin(saver, turn)
    with monkeypatch.context() as patched:
        patched.setattr(rollback, "restore", fail_to_restore)
        account = Account(turn, Tally(), lambda: 1)
        await tell(claims, memory, await undo(memory, account, Outcome()))
        valkey.delete(keys.quarantined())  # Redis may have forgotten it
        await restart(redis, saver)
        assert valkey.smembers(keys.quarantined()) == {turn.thread_id.encode()}
        assert await rows(saver) != UNTOUCHED
    await restart(redis, saver)
    assert valkey.smembers(keys.quarantined()) == set()
    assert await rows(saver) == UNTOUCHED
    assert (await turns.read(turn.turn_id)).error == ROLLBACK_FAILED
    assert await outcomes(saver) == ["error"]
    await accept(turns, thread_id=turn.thread_id)


async def test_a_turn_that_ended_stays_so_when_redis_has_forgotten_that(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver
) -> None:
    turn = await start(turns, claims)
    memory = await begin(saver, turn)
    await memory.commit(Ending(turn=turn, chunk=done(turn)))
    before = await rows(saver)
    await claim(Claims(redis, LIFETIMES), turn)  # the claim that Redis knows is another one
    await restart(redis, saver)
    assert await rows(saver) == before
    assert (await turns.read(turn.turn_id)).status == "done"
    assert await rows(saver, *LOWERED) == LOWERED


async def test_whatever_it_finds_is_in_order_after_twice(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver
) -> None:
    await begin(saver, await start(turns, claims))
    await restart(redis, saver)
    before = await rows(saver, "checkpoints", "writes", *OURS)
    await restart(redis, saver)
    assert await rows(saver, "checkpoints", "writes", *OURS) == before
