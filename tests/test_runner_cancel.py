"""A running turn is cancelled, at each moment at which that is decided."""

import pytest

from shared.claims import Claims
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import Rows, graph_of, rows
from tests.runners import Held, after, begin
from tests.turns_made import LIFETIMES, accept, claim
from worker.checkpoints import TurnSaver
from worker.memory import Memory
from worker.settings import WorkerSettings
from worker.turns import TurnRunner

UNTOUCHED: Rows = {"checkpoints": [], "writes": []}


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def memory(saver: TurnSaver, held: Held) -> Memory:
    return Memory(saver, {"chat": graph_of(held.answer, saver)})


@pytest.fixture
async def runner(redis: Redis, saver: TurnSaver, memory: Memory, held: Held) -> TurnRunner:
    agents = {"chat": graph_of(held.answer, saver)}
    settings = WorkerSettings(TURN_TIMEOUT_S=60)
    return TurnRunner(Claims(redis, LIFETIMES), memory, agents, settings)


async def test_the_word_of_a_cancel_ends_the_turn(
    turns: Turns, runner: TurnRunner, held: Held, saver: TurnSaver
) -> None:
    running = await begin(runner, turn := await accept(turns), held)
    runner.cancel("another")
    assert (await turns.cancel(turn.turn_id)).turn.status == "cancelling"
    runner.cancel(turn.turn_id)
    runner.cancel(turn.turn_id)
    await running
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.rolled_back_messages) == ("cancelled", 1)
    assert await rows(saver) == UNTOUCHED


async def test_a_word_that_was_lost_is_asked_for(
    turns: Turns, runner: TurnRunner, held: Held
) -> None:
    runner.probe()  # nothing has ever run
    running = await begin(runner, turn := await accept(turns), held)
    await turns.cancel(turn.turn_id)
    assert not running.done()
    runner.probe()
    await running
    assert (await turns.read(turn.turn_id)).status == "cancelled"


async def test_a_turn_that_is_cancelling_when_it_is_claimed_never_runs(
    turns: Turns, redis: Redis, runner: TurnRunner, held: Held
) -> None:
    turn = await claim(Claims(redis, LIFETIMES), await accept(turns))
    await turns.cancel(turn.turn_id)
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.rolled_back_messages, held.begun) == ("cancelled", 0, 0)


async def test_a_cancel_before_the_commit_undoes_the_turn(
    turns: Turns,
    runner: TurnRunner,
    held: Held,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = await accept(turns)

    async def cancel() -> None:
        await turns.cancel(turn.turn_id)
        runner.cancel(turn.turn_id)

    after(monkeypatch, memory, "drain", cancel)
    held.free.set()
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.rolled_back_messages) == ("cancelled", 2)
    assert await rows(saver) == UNTOUCHED


async def test_a_cancel_after_the_commit_is_too_late(
    turns: Turns,
    runner: TurnRunner,
    held: Held,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = await accept(turns)
    answers: list[str] = []

    async def cancel() -> None:
        answers.append((await turns.cancel(turn.turn_id)).turn.status)
        runner.cancel(turn.turn_id)

    after(monkeypatch, memory, "commit", cancel)
    held.free.set()
    await runner.run(turn.turn_id)
    assert answers == ["cancelling"]
    assert (await turns.read(turn.turn_id)).status == "done"
    assert (await turns.cancel(turn.turn_id)).ended_before
    assert await rows(saver) != UNTOUCHED


async def test_a_time_limit_is_no_cancel(
    turns: Turns,
    redis: Redis,
    held: Held,
    memory: Memory,
    saver: TurnSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agents = {"chat": graph_of(held.answer, saver)}
    settings = WorkerSettings(TURN_TIMEOUT_S=0.05)
    runner = TurnRunner(Claims(redis, LIFETIMES), memory, agents, settings)
    turn = await accept(turns)

    async def cancel() -> None:
        await turns.cancel(turn.turn_id)
        runner.cancel(turn.turn_id)

    after(monkeypatch, memory, "fence_of", cancel)
    await runner.run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert ended.error
    assert (ended.status, ended.error.code) == ("error", "timeout")
    assert await rows(saver) == UNTOUCHED
