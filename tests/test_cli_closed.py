"""Whoever reads the answer has gone."""

import pytest

from tests.command import command, read_until
from tests.fake_api import TURN, FakeApi, Reply, events, numbered
from tests.terminal import cancelled, queued, silent, text

GOES_ON = f"turnkeeper: the turn goes on; follow it with: turnkeeper follow {TURN}\n"


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_the_turn_goes_on_and_that_is_said(flags: list[str], fake_api: FakeApi):
    fake_api.script = [Reply(events(*numbered(queued(1), text("Half"))), hang=True)]
    with command(fake_api, "ask", "Hi", *flags) as process:
        assert process.stdout
        process.stdout.close()
        assert process.stderr
        notes = process.stderr.read().decode()
        process.wait()
    assert process.returncode == 1
    assert notes.endswith(GOES_ON)
    assert "Traceback" not in notes
    assert fake_api.paths("/cancel") == []


def test_a_cancel_that_was_promised_is_sent_all_the_same(fake_api: FakeApi):
    fake_api.script = [silent(queued(1), text("Half"), end=cancelled())]
    with command(fake_api, "ask", "Hi", "--cancel-after", "0.2") as process:
        assert process.stdout
        process.stdout.close()
        read_until(process, "3 messages rolled back")
        process.wait()
    assert process.returncode == 2
    assert fake_api.paths("/cancel") == [f"/turns/{TURN}/cancel"]
