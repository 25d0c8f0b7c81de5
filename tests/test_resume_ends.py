"""A turn that its worker has left in the middle is undone all the same, if it must not go on."""

import pytest

from shared import keys
from shared.redis import Redis
from shared.turns import Turns
from tests.memory import rows
from tests.redis_seen import RedisSeen
from tests.turns_made import accept
from tests.two_steps import UNTOUCHED, TwoSteps, kill, stop
from worker.checkpoints import TurnSaver

HOUR_MS = 3_600_000


@pytest.fixture
def steps(redis: Redis, saver: TurnSaver, valkey: RedisSeen) -> TwoSteps:
    return TwoSteps(redis, saver, valkey)


async def test_a_turn_takes_its_worker_down_twice_at_most(
    turns: Turns, steps: TwoSteps, saver: TurnSaver
) -> None:
    turn = await accept(turns)
    for _ in range(2):
        await kill(await steps.begin(steps.worker(), turn))
    steps.free.set()
    await steps.worker().run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert ended.error
    assert (ended.status, ended.error.code, ended.attempt) == ("error", "worker_lost", 3)
    assert ended.rolled_back_messages == 2
    assert (steps.firsts, steps.seconds) == (1, 2)
    assert await rows(saver) == UNTOUCHED


async def test_or_once_if_the_settings_say_so(
    turns: Turns, steps: TwoSteps, saver: TurnSaver
) -> None:
    turn = await accept(turns)
    await kill(await steps.begin(steps.worker(), turn))
    await steps.worker(ON_WORKER_LOST="rollback").run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert ended.error
    assert (ended.error.code, ended.rolled_back_messages) == ("worker_lost", 2)
    assert steps.seconds == 1
    assert await rows(saver) == UNTOUCHED


@pytest.mark.parametrize("setting", ["resume", "rollback"])
@pytest.mark.parametrize("stopped", [False, True])
async def test_a_cancel_that_was_stored_counts(
    turns: Turns, steps: TwoSteps, saver: TurnSaver, stopped: bool, setting: str
) -> None:
    turn = await accept(turns)
    running = await steps.begin(worker := steps.worker(), turn)
    await (stop(worker, running) if stopped else kill(running))
    assert (await turns.cancel(turn.turn_id)).turn.status == "cancelling"
    steps.free.set()
    await steps.worker(ON_WORKER_LOST=setting).run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    attempt = 1 if stopped else 2
    assert (ended.status, ended.rolled_back_messages, ended.attempt) == ("cancelled", 2, attempt)
    assert steps.told(turn)[-1] == "cancelled"
    assert steps.seconds == 1
    assert await rows(saver) == UNTOUCHED


@pytest.mark.parametrize("stopped", [False, True])
async def test_its_time_limit_counts_what_it_has_run_before(
    turns: Turns, steps: TwoSteps, valkey: RedisSeen, stopped: bool
) -> None:
    turn = await accept(turns)
    running = await steps.begin(worker := steps.worker(TURN_TIMEOUT_S=3600), turn)
    valkey.hincrby(keys.turn(turn.turn_id), "claimed_at", -HOUR_MS)
    await (stop(worker, running) if stopped else kill(running))
    await steps.worker(TURN_TIMEOUT_S=3600).run(turn.turn_id)
    ended = await turns.read(turn.turn_id)
    assert ended.error
    assert (ended.error.code, ended.rolled_back_messages) == ("timeout", 2)
    assert HOUR_MS <= ended.ran_ms < 1.1 * HOUR_MS
