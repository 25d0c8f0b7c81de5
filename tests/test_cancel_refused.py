"""A tool that will not be cancelled is left behind, and nothing that it does then is heard."""

from asyncio import Event
from pathlib import Path

import pytest

from shared.chunks import Cancelled
from tests.fake_llama import Reply
from tests.traceless.dialogue import (
    HISTORY,
    LATER,
    Replies,
    Tool,
    block,
    calls,
    delegate,
    note,
    stay,
)
from tests.traceless.points import DO
from tests.traceless.rows import changes, count_by_kind
from tests.traceless.stage import CONTROL, SUBJECT, open_stage
from worker import run

HELP_FOR_EVER = "Look it up for ever."

TOOLS = {
    "a tool that swallows it": [stay("here")],
    "a tool of a sub-agent": [delegate(HELP_FOR_EVER)],
    "one tool of three": [note(), stay("here"), delegate("Look it up.")],
    "a tool in a thread": [block("here")],
}


@pytest.mark.parametrize("tools", TOOLS.values(), ids=TOOLS.keys())
async def test_a_tool_that_will_not_be_cancelled(
    tools: list[Tool], redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "CANCEL_S", 0.1)

    def dialogue(_: Event) -> dict[str, Replies]:
        return {
            DO: [calls(*tools), Reply("Too late.")],
            HELP_FOR_EVER: [calls(stay("here")), Reply("Found too late.")],
        }

    async with open_stage(redis_url, tmp_path, dialogue) as stage:
        await stage.remember(HISTORY, SUBJECT, CONTROL)
        before = stage.rows()
        turn = await stage.begin(DO)
        await turn.reach(lambda turn: stage.view.tools.held == ["here"])

        *_, end = await turn.cancel()
        assert isinstance(end, Cancelled)
        assert stage.view.tools.held == ["here"], "it goes on all the same"
        assert changes(before, stage.rows()) == []

        assert await turn.let_go() == []
        assert stage.view.tools.held == []
        assert changes(before, stage.rows()) == []
        for text in LATER:
            assert await stage.say(text) == await stage.say(text, CONTROL)
        assert count_by_kind(stage.rows()) == count_by_kind(stage.rows(CONTROL))
