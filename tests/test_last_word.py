"""A turn that its worker lets go in its last moment, at whatever point it was."""

from pathlib import Path

import pytest

from shared.redis import open_redis
from shared.turns import Turns
from tests.chaos.kills.loss import check_whole, lose
from tests.chaos.kills.points import MID_STREAM, POINTS, Point
from tests.chaos.kills.scene import open_scene
from worker.last_word import note_and_requeue
from worker.settings import WorkerSettings

UNTOLD = next(point for point in POINTS if point.name == "after a commit, nothing told")


@pytest.mark.parametrize("point", [MID_STREAM, UNTOLD], ids=lambda point: point.name)
async def test_a_turn_that_is_let_go_has_not_crashed(
    point: Point, redis_url: str, tmp_path: Path
) -> None:
    async with open_scene(redis_url, tmp_path, point) as scene:
        loss = await lose(scene, point)
        settings = WorkerSettings(REDIS_URL=redis_url, CHECKPOINT_DB=scene.view.database)
        async with open_redis(redis_url) as redis:
            turn = await Turns(redis, settings.lifetimes).read(loss.turn.turn_id)
        assert turn.turn_id in await note_and_requeue(turn, settings)
        scene.let_go()
        async with scene.worker():
            await check_whole(loss)
        record = await scene.view.service.turn(loss.turn.turn_id)
    assert (record["status"], record["attempt"]) == ("done", 1)
