"""A turn's end in the database when the database itself may fail."""

import logging
import sqlite3
from typing import Any

import pytest

from shared.chunks import Cancelled, Done, Error
from shared.claims import Claims
from shared.errors import Fenced, Quarantined
from shared.lane import Lane
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import Rows, put, rows, untold
from tests.turns_made import LIFETIMES, accept, claim, claimed_turn
from worker import rollback, settlement
from worker.checkpoints import TurnSaver
from worker.conclusion import CANCELLED, DONE, Account, Outcome
from worker.failures import ROLLBACK_FAILED
from worker.memory import Memory
from worker.rollback import RestoreFailed
from worker.settlement import abandon, keep, lift, undo
from worker.tally import Tally
from worker.telling import tell_later

TURN = claimed_turn()
ACCOUNT = Account(TURN, Tally(), lambda: 1.5)
UNTOUCHED: Rows = {"checkpoints": [], "writes": []}


@pytest.fixture
async def memory(saver: TurnSaver) -> Memory:
    """A memory in the middle of a turn."""
    memory = Memory(saver, {}, kept_s=0)
    await memory.begin(TURN)
    await put(saver)
    return memory


async def fail_to_restore(*_: object) -> None:
    raise RestoreFailed("it does not fit")


async def fail(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


async def test_a_turn_is_kept(memory: Memory, saver: TurnSaver) -> None:
    ending = await keep(memory, ACCOUNT, lambda: DONE)
    assert isinstance(ending.chunk, Done)
    assert ending.chunk.metadata.elapsed_s == 1.5
    assert await rows(saver) != UNTOUCHED
    assert await untold(memory) == [ending]


async def test_a_cancel_in_the_last_moment_undoes_it(memory: Memory, saver: TurnSaver) -> None:
    ending = await keep(memory, ACCOUNT, lambda: CANCELLED)
    assert isinstance(ending.chunk, Cancelled)
    assert await rows(saver) == UNTOUCHED
    assert await untold(memory) == [ending]


async def test_a_turn_that_cannot_be_saved_is_undone(
    memory: Memory, saver: TurnSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "commit", fail)
    ending = await keep(memory, ACCOUNT, lambda: DONE)
    assert isinstance(ending.chunk, Error)
    assert (ending.chunk.metadata.code, ending.failure) == ("agent", settlement.NOT_SAVED.failure)
    assert await rows(saver) == UNTOUCHED


async def test_a_turn_that_never_began_has_nothing_to_undo(saver: TurnSaver) -> None:
    memory = Memory(saver, {}, kept_s=0)
    ending = await undo(memory, ACCOUNT, CANCELLED)
    assert ending.rolled_back_messages == 0
    assert await untold(memory) == [ending]


async def test_a_turn_on_a_fenced_thread_leaves_the_fence_alone(
    memory: Memory, saver: TurnSaver
) -> None:
    memory.gate.close()
    before = await rows(saver, "checkpoints", "writes", "open_turns")
    account = Account(claimed_turn(turn_id="next"), Tally(), lambda: 1)
    ending = await undo(memory, account, Outcome(ROLLBACK_FAILED))
    assert (ending.failure, ending.rolled_back_messages) == (ROLLBACK_FAILED, 0)
    assert await rows(saver, "checkpoints", "writes", "open_turns") == before


async def test_a_thread_that_cannot_be_restored_is_quarantined(
    memory: Memory, saver: TurnSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(rollback, "restore", fail_to_restore)
        ending = await undo(memory, ACCOUNT, CANCELLED)
        assert isinstance(ending.chunk, Error)
        assert ending.chunk.metadata.code == "rollback_failed"
        [fence] = await memory.fences()
        assert fence.state == "failed"
        assert not await lift(memory, fence)
    assert await lift(memory, fence)
    assert await memory.fences() == []
    assert await rows(saver) == UNTOUCHED


async def test_a_thread_whose_turn_ended_is_quarantined_when_it_cannot_be_restored(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollback, "restore", fail_to_restore)
    [fence] = await memory.fences()
    assert fence.state == "running"
    assert not await lift(memory, fence)
    [fence] = await memory.fences()
    assert fence.state == "failed"


async def test_the_fence_stands_even_if_that_cannot_be_noted(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(rollback, "restore", fail_to_restore)
    monkeypatch.setattr(memory, "quarantine", fail)
    with caplog.at_level(logging.ERROR):
        ending = await undo(memory, ACCOUNT, CANCELLED)
    assert ending.failure == ROLLBACK_FAILED
    assert "database or disk is full" in caplog.text
    assert len(await memory.fences()) == 1


@pytest.mark.parametrize("fails", [False, True])
async def test_a_turn_that_will_begin_again_leaves_no_trace_or_no_way_in(
    memory: Memory, saver: TurnSaver, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    if fails:
        monkeypatch.setattr(rollback, "restore", fail_to_restore)
    await abandon(memory, TURN)
    assert len(await memory.fences()) == int(fails)
    assert (await rows(saver) == UNTOUCHED) is not fails
    assert await untold(memory) == []


async def accepted_and_claimed(turns: Turns, claims: Claims, **changes: Any) -> Account:
    turn = await claim(claims, await accept(turns, **changes))
    return Account(turn, Tally(), lambda: 1)


async def test_a_quarantined_thread_takes_no_turn(
    turns: Turns, claims: Claims, lane: Lane, saver: TurnSaver
) -> None:
    memory = Memory(saver, {}, kept_s=0)
    account = await accepted_and_claimed(turns, claims, thread_id="broken")
    await memory.write_down(ending := account.conclude(Outcome(ROLLBACK_FAILED)))
    await tell_later(claims, memory, ending)
    assert await untold(memory) == []
    for retry_of in ("", account.turn.turn_id):
        with pytest.raises(Quarantined, match="broken"):
            await accept(turns, thread_id="broken", retry_of=retry_of)
    await accept(turns, thread_id="sound")

    await lane.quarantine([], only=True)
    await accept(turns, thread_id="broken")


async def test_an_end_that_redis_refuses_stays_in_the_outbox(
    turns: Turns, claims: Claims, redis: Redis, saver: TurnSaver
) -> None:
    memory = Memory(saver, {}, kept_s=0)
    account = await accepted_and_claimed(turns, claims)
    await claim(Claims(redis, LIFETIMES), account.turn)
    await memory.write_down(ending := account.conclude(DONE))
    with pytest.raises(Fenced):
        await tell_later(claims, memory, ending)
    assert await untold(memory) == [ending]
