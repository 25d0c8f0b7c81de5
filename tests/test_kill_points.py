"""A worker dies at a chosen moment of a turn; the next one brings the turn to its end, once."""

from dataclasses import replace
from pathlib import Path

import pytest

from shared.chunks import Cancelled, Error, type_of
from tests.chaos.kills import hooks
from tests.chaos.kills.hooks import Hook
from tests.chaos.kills.loss import (
    cancel,
    check_later,
    check_undone,
    check_whole,
    kill,
    lose,
    rewinds,
    stop,
    store_cancel,
)
from tests.chaos.kills.points import MID_STREAM, PARALLEL, POINTS, Point
from tests.chaos.kills.scene import Scene, open_scene
from tests.traceless.dialogue import PLAN
from tests.traceless.turn import Turn
from tests.zygote import KILLED, Forked

TWO = pytest.mark.parametrize("point", [MID_STREAM, PARALLEL], ids=lambda point: point.name)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
async def test_a_killed_workers_turn_goes_on(point: Point, redis_url: str, tmp_path: Path) -> None:
    async with open_scene(redis_url, tmp_path, point) as scene:
        loss = await lose(scene, point)
        assert loss.exit_code == KILLED
        scene.let_go()
        async with scene.worker():
            seen = await check_whole(loss)
            await check_later(scene)
        record = await scene.view.service.turn(loss.turn.turn_id)
    assert record["attempt"] == point.attempt
    assert rewinds(seen) == ["worker_lost"] * (point.attempt - 1)


@TWO
async def test_or_it_is_undone_if_the_settings_say_so(
    point: Point, redis_url: str, tmp_path: Path
) -> None:
    async with open_scene(redis_url, tmp_path, point, ON_WORKER_LOST="rollback") as scene:
        loss = await lose(scene, point)
        scene.let_go()
        async with scene.worker():
            end = await check_undone(loss)
    assert isinstance(end, Error)
    assert end.metadata.code == "worker_lost"


async def test_a_turn_that_takes_its_worker_down_twice_is_undone(
    redis_url: str, tmp_path: Path
) -> None:
    async with open_scene(redis_url, tmp_path, MID_STREAM) as scene:
        loss = await lose(scene, MID_STREAM)
        async with scene.worker() as worker:
            await loss.turn.reach(lambda turn: speaks_again(turn, loss.n_asked))
            await kill(worker, loss.turn)
        scene.let_go()
        async with scene.worker():
            end = await check_undone(loss, asked_again=1)
    assert isinstance(end, Error)
    assert end.metadata.code == "worker_lost"


def speaks_again(turn: Turn, n_asked: int) -> bool:
    """The model has been asked once more, and is held in its words."""
    return len(turn.calls) > n_asked and turn.calls[-1].state == "decode"


@pytest.mark.parametrize("setting", ["resume", "rollback"])
async def test_a_cancel_that_was_stored_counts(
    setting: str, redis_url: str, tmp_path: Path
) -> None:
    async with open_scene(redis_url, tmp_path, MID_STREAM, ON_WORKER_LOST=setting) as scene:
        loss = await lose(scene, MID_STREAM)
        await store_cancel(loss.turn)
        scene.let_go()
        async with scene.worker():
            end = await check_undone(loss)
    assert isinstance(end, Cancelled)
    assert end.metadata.rolled_back_messages == MID_STREAM.adds


@pytest.mark.parametrize("hook", [hooks.in_a_restore, hooks.after_a_restore])
async def test_a_restore_is_whole_or_done_again(hook: Hook, redis_url: str, tmp_path: Path) -> None:
    point = replace(PARALLEL, hook=hook)
    async with open_scene(redis_url, tmp_path, point) as scene:
        loss = await lose(scene, point, cancel)
        assert loss.exit_code == KILLED
        scene.let_go()
        async with scene.worker():
            end = await check_undone(loss)
    assert isinstance(end, Cancelled)
    assert end.metadata.rolled_back_messages == point.adds


@TWO
async def test_a_stopped_workers_turn_waits_first_in_line_and_goes_on(
    point: Point, redis_url: str, tmp_path: Path
) -> None:
    behind: list[str] = []

    async def stop_with_one_behind(worker: Forked, turn: Turn) -> None:
        behind.append(await turn.view.service.post(PLAN, thread_id="behind"))
        await stop(worker, turn)

    async with open_scene(redis_url, tmp_path, point) as scene:
        loss = await lose(scene, point, stop_with_one_behind)
        assert loss.exit_code == 0
        told = loss.turn.log
        assert told[-1]["type"] == "queued"
        assert [chunk["turn_id"] for chunk in await waiting(scene)] == [loss.turn.turn_id, *behind]

        scene.let_go()
        async with scene.worker():
            seen = await check_whole(loss)
            await scene.view.service.follow(behind[0])
            await check_later(scene)
        records = [await scene.view.service.turn(turn) for turn in (loss.turn.turn_id, *behind)]
    assert [type_of(chunk) for chunk in seen[: len(told)]] == [chunk["type"] for chunk in told]
    assert rewinds(seen) == ["worker_stopped"]
    assert records[0]["attempt"] == 1
    assert records[0]["finished_at"] <= records[1]["started_at"]


async def waiting(scene: Scene) -> list[dict[str, object]]:
    """The turns that wait, in their order."""
    queue = (await scene.view.service.client.get("/queue")).json()
    assert queue["running"] is None
    return queue["waiting"]
