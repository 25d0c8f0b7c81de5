"""A turn that fails, in whatever way, leaves its thread as if it had never been."""

from asyncio import Event
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shared.chunks import Error
from tests.fake_llama import Reply
from tests.traceless.dialogue import HISTORY, LATER, Replies, calls, delegate, fail, note
from tests.traceless.points import DO
from tests.traceless.rows import changes, count_by_kind
from tests.traceless.stage import CONTROL, SUBJECT, open_stage
from tests.traceless.ways import Says, calling, holding
from tests.traceless.workshop import BREAK

HELP_IN_VAIN = "Look it up in vain."
FAILURE = {"message": "out of memory", "type": "server_error"}


@dataclass(frozen=True)
class Fault:
    """`adds`: how many messages of the turn are in the database before it is let fail.

    None: it is not held, and how far it comes is not certain.
    """

    name: str
    code: str
    says: Says
    adds: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def dialogue(self, hold: Event) -> dict[str, Replies]:
        """All that is said beside what every test knows."""
        return {DO: self.says(hold), HELP_IN_VAIN: [calls(note()), calls(fail("inside"))]}


def failing_in_words(hold: Event) -> Replies:
    said = Reply("Well, let me", hang_after=3, release=hold, stream_error=(3, FAILURE))
    return [calls(note()), said]


FAULTS = [
    Fault("refused", "model_error", lambda _: [calls(note()), Reply(error=(500, FAILURE))]),
    Fault("in its words", "model_error", failing_in_words, 3),
    Fault("cut off", "model_unavailable", lambda _: [calls(note()), Reply("Well", die_after=0)]),
    Fault("tool", "agent", calling(fail("here")), 2),
    Fault("sub-agent's tool", "agent", calling(delegate(HELP_IN_VAIN)), 2),
    Fault("node", "agent", calling(note(BREAK)), 3),
    Fault("steps", "step_limit", lambda _: [calls(note())] * 99, None, {"STEP_LIMIT": 30}),
    Fault("time", "timeout", holding(note()), None, {"TURN_TIMEOUT_S": 0.5}),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_a_failure_leaves_no_trace(fault: Fault, redis_url: str, tmp_path: Path) -> None:
    async with open_stage(redis_url, tmp_path) as stage:
        await stage.remember(HISTORY, SUBJECT, CONTROL)
        before = stage.rows()

    async with open_stage(redis_url, tmp_path, fault.dialogue, **fault.settings) as stage:
        turn = await stage.begin(DO)
        if fault.adds is not None:
            await turn.reach(lambda turn: turn.n_messages == fault.adds)
            stage.view.tools.let_go()
        *_, end = await turn.end()
        assert changes(before, stage.rows()) == []
        assert isinstance(end, Error)
        assert end.metadata.code == fault.code
        if fault.adds is not None:
            assert end.metadata.rolled_back_messages == fault.adds
        assert await turn.let_go() == []
        assert changes(before, stage.rows()) == []

    async with open_stage(redis_url, tmp_path) as stage:
        for text in LATER:
            assert await stage.say(text) == await stage.say(text, CONTROL)
        assert count_by_kind(stage.rows()) == count_by_kind(stage.rows(CONTROL))
