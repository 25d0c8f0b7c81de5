"""A turn that is cancelled, at whatever point, leaves its thread as if it had never been."""

from pathlib import Path

import pytest

from shared.chunks import Cancelled
from tests.traceless.dialogue import LATER
from tests.traceless.points import DO, POINTS, WITH_DECISIONS, Point
from tests.traceless.rows import changes, count_by_kind
from tests.traceless.stage import CONTROL, SUBJECT, open_stage


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
async def test_a_cancel_leaves_no_trace(point: Point, redis_url: str, tmp_path: Path) -> None:
    async with open_stage(redis_url, tmp_path, point.dialogue) as stage:
        await stage.remember(point.history, SUBJECT, CONTROL)
        before = stage.rows()
        turn = await stage.begin(DO)
        await turn.reach(point.is_reached)
        assert changes(before, stage.rows()), "there is something to take back"

        *_, end = await turn.cancel()
        assert changes(before, stage.rows()) == []
        assert isinstance(end, Cancelled)
        assert end.metadata.rolled_back_messages == point.adds

        assert await turn.let_go() == []
        assert changes(before, stage.rows()) == []
        for text in LATER:
            assert await stage.say(text) == await stage.say(text, CONTROL)
        assert count_by_kind(stage.rows()) == count_by_kind(stage.rows(CONTROL))


@pytest.mark.parametrize("point", WITH_DECISIONS)
@pytest.mark.xfail(reason="questions come with approvals", run=False)
async def test_a_cancel_around_a_decision_leaves_no_trace(point: str) -> None:
    raise NotImplementedError(point)
