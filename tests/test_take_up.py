"""A turn that was begun before is begun again: from what has landed, or from its input."""

import pytest

from shared.record import TurnRecord
from tests.memory import OURS, Rows, place, put, rows, working_for, write
from tests.turns_made import claimed_turn, done
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.failures import ThreadQuarantined
from worker.fence import Fence
from worker.gate import TurnClosed
from worker.memory import Memory

EARLIER = claimed_turn(turn_id="earlier")
TURN = claimed_turn()
AGAIN = claimed_turn(claim=2, attempt=2, run_id="another run")
ORPHAN = "0"
"""The id of a checkpoint that was never put: below every other."""


@pytest.fixture
async def memory(saver: TurnSaver) -> Memory:
    """A memory with a thread that has had a turn, on whose head a task has failed."""
    memory = Memory(saver, {})
    await memory.begin(EARLIER)
    with working_for(saver, "earlier"):
        head = await put(saver, turn_id="earlier")
        await saver.aput_writes(place(checkpoint_id=head), [("__error__", "boom")], "failed")
        # Its checkpoint has not landed; it belongs to the thread all the same.
        await saver.aput_writes(place(checkpoint_id=ORPHAN), [("messages", "old")], "earlier")
    memory.gate.close()
    await memory.commit(Ending(turn=EARLIER, chunk=done(EARLIER)))
    return memory


async def begin(memory: Memory, turn: TurnRecord) -> tuple[bool, Fence]:
    """Whether its input has landed before, and its fence."""
    begun = await memory.begin(turn)
    fence = await memory.fence_of(turn.thread_id)
    assert fence
    return begun.landed, fence


def die(memory: Memory) -> None:
    """As a worker does: nothing is tidied up, and the gate is the next one's."""
    memory.gate.close()


async def test_a_turn_begins_once(memory: Memory) -> None:
    landed, fence = await begin(memory, TURN)
    assert not landed
    assert fence.belongs_to(TURN)
    assert fence.highest == fence.head is not None


async def test_what_has_landed_is_gone_on_from(memory: Memory, saver: TurnSaver) -> None:
    _, first = await begin(memory, TURN)
    landed_id = await put(saver)
    before = await rows(saver, "checkpoints", "writes", "fenced_checkpoints", "fenced_writes")
    die(memory)
    landed, fence = await begin(memory, AGAIN)
    assert landed
    assert await rows(saver, *before) == before
    # The same fence, for another run.
    assert fence._replace(record=first.record) == first
    assert '"run_id":"another run"' in fence.record
    assert memory.gate.turn
    assert memory.gate.turn.above == landed_id


async def test_only_what_it_puts_above_that_is_let_in(memory: Memory, saver: TurnSaver) -> None:
    await begin(memory, TURN)
    left = memory.gate.turn
    landed_id = await put(saver)
    die(memory)
    await begin(memory, AGAIN)
    assert await put(saver) > landed_id
    # What is left of the first run works for another opening of the gate.
    assert left is not memory.gate.turn


async def test_a_later_restore_undoes_both_runs(memory: Memory, saver: TurnSaver) -> None:
    before = await rows(saver)
    await begin(memory, TURN)
    await put(saver)
    die(memory)
    _, fence = await begin(memory, AGAIN)
    await put(saver)
    await put(saver, namespace="tools:1")
    await memory.restore(fence, None)
    assert await rows(saver) == before
    assert await rows(saver, "open_turns") == {"open_turns": []}


async def test_writes_without_their_checkpoint_go(memory: Memory, saver: TurnSaver) -> None:
    await begin(memory, TURN)
    await put(saver)
    before = await rows(saver)
    await write(saver, "1", "messages", "of a checkpoint that has not landed")
    with working_for(saver, "turn"):
        there = place(namespace="tools:1", checkpoint_id="1")
        await saver.aput_writes(there, [("messages", "of a sub-agent's")], "task")
    die(memory)
    landed, _ = await begin(memory, AGAIN)
    assert landed
    assert await rows(saver) == before


async def test_what_has_not_landed_is_undone(memory: Memory, saver: TurnSaver) -> None:
    before: Rows = await rows(saver)
    _, first = await begin(memory, TURN)
    await write(saver, ORPHAN, "messages", "new")
    # A sub-agent's checkpoint alone is nothing to go on from.
    await put(saver, namespace="tools:1")
    die(memory)
    landed, fence = await begin(memory, AGAIN)
    assert not landed
    assert await rows(saver) == before
    assert fence._replace(record=first.record) == first
    assert '"run_id":"another run"' in fence.record


async def test_on_a_new_thread_too(memory: Memory, saver: TurnSaver) -> None:
    turn, again = (claimed_turn(thread_id="new", claim=claim) for claim in (1, 2))
    before = await rows(saver)
    await begin(memory, turn)
    await write_on_new(saver, "1")
    die(memory)
    landed, fence = await begin(memory, again)
    assert (landed, fence.head) == (False, None)
    assert await rows(saver) == before
    await put(saver, thread_id="new")
    die(memory)
    assert (await begin(memory, again))[0]


async def write_on_new(saver: TurnSaver, checkpoint_id: str) -> None:
    with working_for(saver, "turn"):
        there = place("new", checkpoint_id=checkpoint_id)
        await saver.aput_writes(there, [("messages", "hello")], "task")


async def test_another_turn_does_not_take_it_up(memory: Memory, saver: TurnSaver) -> None:
    await begin(memory, TURN)
    await put(saver)
    die(memory)
    before = await rows(saver, "checkpoints", "writes", *OURS)
    with pytest.raises(ThreadQuarantined):
        await memory.begin(claimed_turn(turn_id="next"))
    assert await rows(saver, "checkpoints", "writes", *OURS) == before
    with working_for(saver, "next"), pytest.raises(TurnClosed):
        await put(saver, turn_id="next")
