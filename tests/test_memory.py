"""A thread is fenced, changed, and then kept or made row for row what it was."""

import sqlite3

import pytest

from shared.record import TurnRecord
from tests.memory import OURS, Rows, place, put, rows, untold, write
from tests.turns_made import claimed_turn, done
from worker import outbox
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.failures import ThreadQuarantined
from worker.fence import Fence
from worker.memory import Memory
from worker.rollback import RestoreFailed

TURN = claimed_turn()
ENDING = Ending(turn=TURN, chunk=done(TURN))
LOWERED: Rows = {"open_turns": [], "fenced_checkpoints": [], "fenced_writes": []}


@pytest.fixture
async def memory(saver: TurnSaver) -> Memory:
    """A memory with two threads, of which each has two namespaces and a failed task."""
    memory = Memory(saver, {}, kept_s=0)
    for thread_id in ("another", "thread"):
        earlier = claimed_turn(turn_id="earlier", thread_id=thread_id)
        await memory.begin(earlier)
        for namespace in ("", "tools:1"):
            await put(saver, turn_id="earlier", thread_id=thread_id, namespace=namespace)
        memory.gate.close()
        await memory.commit(Ending(turn=earlier, chunk=done(earlier)))
        memory.told("earlier")
        assert await untold(memory) == []
    return memory


async def begin(memory: Memory, turn: TurnRecord = TURN) -> Fence:
    await memory.begin(turn)
    fence = await memory.fence_of(turn.thread_id)
    assert fence
    return fence


async def head(saver: TurnSaver) -> str:
    found = await saver.aget_tuple(place())
    assert found
    return found.checkpoint["id"]


async def change(saver: TurnSaver, replaced: str) -> None:
    """What turns do: new checkpoints, new namespaces, writes on an old one, a replaced error."""
    await write(saver, replaced, "__error__", "again")
    await write(saver, replaced, "todos", ["new"])
    for namespace in ("", "tools:1", "tools:2"):
        await put(saver, namespace=namespace)


async def failed_before(memory: Memory, saver: TurnSaver) -> str:
    """The thread's head, on which a task failed in an earlier turn; answers its id."""
    await memory.begin(TURN)
    await write(saver, found := await head(saver), "__error__", "boom")
    memory.gate.close()
    await memory.commit(ENDING)
    memory.told("turn")
    assert await untold(memory) == []
    await saver.conn.execute("DELETE FROM ledger WHERE turn_id = 'turn'")
    await saver.conn.commit()
    return found


async def test_a_restored_thread_is_row_for_row_what_it_was(
    memory: Memory, saver: TurnSaver
) -> None:
    replaced = await failed_before(memory, saver)
    before = await rows(saver)
    fence = await begin(memory)
    await change(saver, replaced)
    assert len((await rows(saver))["checkpoints"]) == len(before["checkpoints"]) + 3
    await memory.restore(fence, ENDING)
    assert await rows(saver) == before
    assert await rows(saver, *LOWERED) == LOWERED


async def test_a_kept_turn_leaves_no_fence(memory: Memory, saver: TurnSaver) -> None:
    await begin(memory)
    await put(saver)
    changed = await rows(saver)
    await memory.drain()
    await memory.commit(ENDING)
    assert await rows(saver) == changed
    assert await rows(saver, *LOWERED) == LOWERED


async def test_a_new_thread_is_no_thread_again(memory: Memory, saver: TurnSaver) -> None:
    before = await rows(saver)
    turn = claimed_turn(thread_id="new")
    fence = await begin(memory, turn)
    assert (fence.head, fence.highest) == (None, None)
    await put(saver, thread_id="new")
    await memory.restore(fence, None)
    assert await rows(saver) == before


async def test_rows_may_move_while_the_fence_stands(memory: Memory, saver: TurnSaver) -> None:
    fence = await begin(memory)
    await put(saver)
    await saver.conn.execute("DELETE FROM checkpoints WHERE thread_id = 'another'")
    await saver.conn.execute("DELETE FROM writes WHERE thread_id = 'another'")
    await saver.conn.commit()
    await saver.conn.execute("VACUUM")
    await memory.restore(fence, None)
    assert len((await rows(saver))["checkpoints"]) == 2


async def test_a_fence_that_does_not_fit_changes_nothing(memory: Memory, saver: TurnSaver) -> None:
    fence = await begin(memory)
    await put(saver)
    await saver.conn.execute("DELETE FROM writes WHERE checkpoint_ns = 'tools:1'")
    await saver.conn.commit()
    before = await rows(saver, "checkpoints", "writes", *OURS)
    with pytest.raises(RestoreFailed, match="has 2 checkpoints and 1 writes; it had 2 and 2"):
        await memory.restore(fence, ENDING)
    assert await rows(saver, "checkpoints", "writes", *OURS) == before


@pytest.mark.parametrize("failed", [False, True])
async def test_no_turn_begins_on_a_thread_with_a_fence(
    memory: Memory, saver: TurnSaver, failed: bool
) -> None:
    await begin(memory)
    memory.gate.close()
    if failed:
        await memory.quarantine(ENDING)
    before = await rows(saver, *OURS)
    with pytest.raises(ThreadQuarantined):
        await memory.begin(claimed_turn(turn_id="next"))
    assert await rows(saver, *OURS) == before
    assert memory.gate.turn is None
    assert [each.state for each in await memory.fences()] == ["failed" if failed else "running"]


async def test_the_end_is_written_in_the_transaction_that_makes_it_so(
    memory: Memory, saver: TurnSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = await begin(memory)
    await put(saver)
    memory.gate.close()
    before = await rows(saver, "checkpoints", "writes", *OURS)

    async def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(outbox, "post", fail)
        for attempt in (
            memory.commit(ENDING),
            memory.restore(fence, ENDING),
            memory.quarantine(ENDING),
            memory.write_down(ENDING),
        ):
            with pytest.raises(sqlite3.OperationalError):
                await attempt
            assert await rows(saver, "checkpoints", "writes", *OURS) == before
    await memory.restore(fence, ENDING)
    assert await memory.end_of(TURN) == ENDING


async def test_an_end_is_kept_until_redis_knows_it(memory: Memory) -> None:
    assert await untold(memory) == []
    await memory.write_down(ENDING)
    assert await untold(memory) == [ENDING]
    memory.told("turn")
    assert await untold(memory) == []
    assert await memory.end_of(TURN) == ENDING, "it is in the book for good"
    assert await memory.end_of(claimed_turn(turn_id="another")) is None


async def test_it_is_kept_as_long_as_redis_may_forget_it_again(saver: TurnSaver) -> None:
    memory = Memory(saver, {}, kept_s=1000)
    await memory.write_down(ENDING)
    memory.told("turn")
    assert await untold(memory) == [ENDING]


async def test_the_ledger_has_a_turn_once(memory: Memory, saver: TurnSaver) -> None:
    for _ in range(2):
        await memory.write_down(ENDING, tell=False)
    entries = (await rows(saver, "ledger"))["ledger"]
    assert [entry[0] for entry in entries].count("turn") == 1
