"""A worker dies in the middle of a turn: the next one goes on from what the database holds."""

import asyncio

import pytest

from shared.redis import Redis
from shared.turns import Turns
from tests.memory import rows
from tests.redis_seen import RedisSeen, log_of
from tests.runners import after
from tests.turns_made import accept
from tests.two_steps import TwoSteps, kill, stop
from worker.checkpoints import TurnSaver


@pytest.fixture
def steps(redis: Redis, saver: TurnSaver, valkey: RedisSeen) -> TwoSteps:
    return TwoSteps(redis, saver, valkey)


async def test_a_step_that_was_taken_is_not_taken_again(
    turns: Turns, steps: TwoSteps, valkey: RedisSeen, saver: TurnSaver
) -> None:
    turn = await accept(turns)
    await kill(await steps.begin(steps.worker(), turn))
    assert (await turns.read(turn.turn_id)).status == "running"
    steps.free.set()
    await steps.worker().run(turn.turn_id)
    assert steps.told(turn) == ["queued", "one", "rewind 2", "two", "done"]
    assert log_of(valkey, turn.turn_id)[2]["metadata"]["reason"] == "worker_lost"
    assert (steps.firsts, steps.seconds) == (1, 2)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.attempt, ended.claim) == ("done", 2, 2)
    assert await rows(saver, "open_turns", "numbering") == {"open_turns": [], "numbering": []}


async def test_each_run_has_an_id(turns: Turns, steps: TwoSteps, valkey: RedisSeen) -> None:
    turn = await accept(turns)
    await kill(await steps.begin(steps.worker(), turn))
    steps.free.set()
    await steps.worker().run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert [run.from_seq for run in ended.runs] == [2, 3]
    assert [run.run_id for run in ended.runs] == [turn.turn_id, ended.run_id]
    summary = log_of(valkey, turn.turn_id)[-1]["metadata"]
    assert summary["run_id"] == ended.run_id != turn.turn_id
    assert summary["chars"] == len("one" + "two")


async def test_a_turn_whose_input_has_not_landed_is_given_it_again(
    turns: Turns, steps: TwoSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.free.set()
    turn, begun = await accept(turns), asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        after(patched, steps.memory, "begin", hang)
        running = asyncio.create_task(steps.worker().run(turn.turn_id))
        await begun.wait()
        await kill(running)
    steps.memory.gate.close()  # the next worker has one of its own
    await steps.worker().run(turn.turn_id)
    assert steps.told(turn) == ["queued", "rewind 1", "one", "two", "done"]
    assert (steps.firsts, steps.seconds) == (1, 1)
    state = await steps.graph.aget_state({"configurable": {"thread_id": turn.thread_id}})
    assert [message.content for message in state.values["messages"]] == ["hi", "one", "two"]


@pytest.mark.parametrize("setting", ["resume", "rollback"])
async def test_a_worker_that_stops_in_order_is_none_that_was_lost(
    turns: Turns, steps: TwoSteps, valkey: RedisSeen, setting: str
) -> None:
    turn = await accept(turns)
    for _ in range(4):
        running = await steps.begin(worker := steps.worker(ON_WORKER_LOST=setting), turn)
        await stop(worker, running)
    steps.free.set()
    await steps.worker(ON_WORKER_LOST=setting).run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.attempt, ended.claim) == ("done", 1, 5)
    assert steps.firsts == 1
    first, log = ["queued", "one", "rewind 2", "queued"], steps.told(turn)
    assert (log[:4], log[-2:]) == (first, ["two", "done"])
    assert log.count("one") == 1
    reasons = [chunk["metadata"].get("reason") for chunk in log_of(valkey, turn.turn_id)]
    assert set(reasons) == {None, "worker_stopped"}
