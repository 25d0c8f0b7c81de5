"""What a worker that follows one that died does with the threads and ends that it left behind."""

import pytest
from msgspec.structs import replace

from shared import keys
from shared.claims import Claims
from shared.lane import Lane
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import OURS, Rows, put, rows
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import LIFETIMES, accept, claim, done, entry, queued, start, text
from worker import rollback
from worker.checkpoints import TurnSaver
from worker.conclusion import Account, Outcome
from worker.ending import Ending
from worker.failures import ROLLBACK_FAILED
from worker.memory import Memory
from worker.recovery import Recovery
from worker.rollback import RestoreFailed
from worker.settings import WorkerSettings
from worker.settlement import undo
from worker.tally import Tally
from worker.telling import tell_later
from worker.turns import TurnRunner

UNTOUCHED: Rows = {"checkpoints": [], "writes": []}
LOWERED: Rows = {"open_turns": [], "fenced_checkpoints": [], "fenced_writes": [], "outbox": []}


async def fail_to_restore(*_: object) -> None:
    raise RestoreFailed("it does not fit")


async def begin(saver: TurnSaver, turn: TurnRecord) -> Memory:
    """As a worker that is killed in the middle of the turn leaves it."""
    memory = Memory(saver, {}, kept_s=0)
    await memory.begin(turn)
    await put(saver, turn_id=turn.turn_id, thread_id=turn.thread_id)
    memory.gate.close()
    return memory


async def restart(redis: Redis, saver: TurnSaver) -> None:
    claims, lane = Claims(redis, LIFETIMES), Lane(redis, LIFETIMES)
    memory = Memory(saver, {}, kept_s=0)
    await Recovery(lane, claims, memory).start()
    await memory.forget_told()


async def everything(saver: TurnSaver) -> Rows:
    return await rows(saver, "checkpoints", "writes", *OURS)


async def outcomes(saver: TurnSaver) -> list[str]:
    """The ledger's, with the turns in order."""
    cursor = await saver.conn.execute("SELECT outcome FROM ledger ORDER BY turn_id")
    return [outcome for (outcome,) in await cursor.fetchall()]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_an_open_turn_is_left_to_the_next_claim(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver, cancelled: bool
) -> None:
    turn = await start(turns, claims)
    await begin(saver, turn)
    if cancelled:
        await turns.cancel(turn.turn_id)
    left, before = await turns.read(turn.turn_id), await everything(saver)
    await restart(redis, saver)
    assert await turns.read(turn.turn_id) == left
    assert await everything(saver) == before


@pytest.mark.parametrize("crashed", [False, True])
async def test_an_open_turn_is_there_again_that_redis_has_forgotten(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen, saver: TurnSaver, crashed: bool
) -> None:
    turn = await start(turns, claims, idempotency_key="key", body_hash="hash")
    memory = await begin(saver, turn)
    if not crashed:
        await memory.let_go(turn, 1)
    before = await everything(saver)
    attempt = 2 if crashed else 1
    for _ in range(2):  # and once more before it is claimed
        valkey.flushall()
        await restart(redis, saver)
    assert await turns.read(turn.turn_id) == replace(turn, status="queued", attempt=attempt)
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued"]
    assert valkey.get(keys.idempotency("key")) == f"{turn.turn_id} hash".encode()
    assert await everything(saver) == before
    taken = await claim(Claims(redis, LIFETIMES), turn)
    assert (taken.attempt, taken.claim, taken.thread_id) == (attempt, 2, turn.thread_id)


async def test_an_open_turn_that_cannot_be_read_any_more_is_undone(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver
) -> None:
    await begin(saver, await start(turns, claims))
    await saver.conn.execute("UPDATE open_turns SET record = '{'")
    await saver.conn.commit()
    await restart(redis, saver)
    assert await rows(saver) == UNTOUCHED
    assert await rows(saver, *LOWERED) == LOWERED


async def test_what_an_ended_turn_has_left_is_undone(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver
) -> None:
    turn = await start(turns, claims)
    await begin(saver, turn)
    await claims.finish(turn, turn.seq + 1, done(turn), None)
    await restart(redis, saver)
    assert await rows(saver) == UNTOUCHED
    assert await rows(saver, *LOWERED) == LOWERED


async def test_an_end_is_told_that_redis_has_not_heard(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen, saver: TurnSaver
) -> None:
    turn = await start(turns, claims)
    memory = await begin(saver, turn)
    log = [entry(1, queued(turn)), entry(2, text(turn, "last words"))]
    await memory.commit(Ending(turn=turn, chunk=done(turn), log=log))
    await turns.cancel(turn.turn_id)  # too late
    await restart(redis, saver)
    assert (await turns.read(turn.turn_id)).status == "done"
    assert [chunk["type"] for chunk in log_of(valkey, turn.turn_id)] == ["queued", "text", "done"]
    assert await rows(saver) != UNTOUCHED
    assert await rows(saver, *LOWERED) == LOWERED


async def test_an_end_is_told_once(
    turns: Turns, claims: Claims, redis: Redis, valkey: RedisSeen, saver: TurnSaver
) -> None:
    turn = await start(turns, claims)
    memory = await begin(saver, turn)
    await memory.commit(ending := Ending(turn=turn, chunk=done(turn)))
    # And killed before the outbox is cleared.
    await claims.finish(turn, turn.seq + 1, ending.chunk, None)
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
        await tell_later(claims, memory, await undo(memory, account, Outcome()))
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
    await TurnRunner(Claims(redis, LIFETIMES), memory, {}, WorkerSettings()).run(turn.turn_id)
    await memory.forget_told()
    assert await rows(saver) == before
    assert (await turns.read(turn.turn_id)).status == "done"
    assert await rows(saver, *LOWERED) == LOWERED


async def test_whatever_it_finds_is_in_order_after_twice(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver
) -> None:
    await begin(saver, await start(turns, claims))
    memory = await begin(saver, ended := await start(turns, claims))
    await memory.commit(Ending(turn=ended, chunk=done(ended)))
    await restart(redis, saver)
    before = await everything(saver)
    await restart(redis, saver)
    assert await everything(saver) == before
