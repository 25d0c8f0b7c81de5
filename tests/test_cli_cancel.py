"""Turns cancelled and retried by command, and after a time."""

import pytest

from tests.fake_api import (
    CANCELLING,
    HANG_UP,
    THREAD,
    TURN,
    FakeApi,
    json_reply,
    numbered,
    problem,
)
from tests.terminal import FIGURES, Run, cancelled, done, queued, silent, stream, text

RETRIED = json_reply({"turn_id": TURN, "thread_id": THREAD}, 202)


@pytest.mark.parametrize("status", ["cancelling", "cancelled", "done"])
def test_a_cancel_says_what_the_turn_is_now(status: str, fake_api: FakeApi, run: Run):
    fake_api.cancels = [json_reply({**CANCELLING, "status": status})]
    result = run("cancel", TURN)
    assert (result.stdout, result.stderr) == (f"turn {TURN}: {status}\n", "")
    assert result.exit_code == 0
    [asked] = fake_api.asked
    assert (asked.method, asked.path) == ("POST", f"/turns/{TURN}/cancel")


def test_a_cancel_as_json(fake_api: FakeApi, run: Run):
    result = run("cancel", TURN, "--json")
    assert result.stdout == f"{fake_api.cancels[0].body.decode()}\n"
    assert result.exit_code == 0


def test_a_cancel_of_what_is_not_there(fake_api: FakeApi, run: Run):
    fake_api.cancels = [problem(404, "unknown_turn", "No turn x is known."), json_reply({})]
    for reason in ("No turn x is known. (unknown_turn)", "the turn cannot be read: "):
        result = run("cancel", "x")
        assert result.stderr.startswith(f"turnkeeper: {reason}")
        assert (result.stdout, result.exit_code) == ("", 1)


def test_a_retry_is_shown_as_a_new_turn(fake_api: FakeApi, run: Run):
    fake_api.script = [RETRIED, stream(queued(1), text("Hello"), done())]
    result = run("retry", "an-earlier-turn")
    assert result.stdout == "Hello\n"
    assert result.stderr.splitlines() == [
        f"turn {TURN}: 1 turn ahead",
        f"done in 3.2 s, {FIGURES}",
        f"thread {THREAD}",
    ]
    assert result.exit_code == 0
    assert fake_api.paths() == ["/turns/an-earlier-turn/retry", f"/turns/{TURN}/events"]


def test_a_retry_as_json(fake_api: FakeApi, run: Run):
    fake_api.script = [RETRIED, stream(queued(1), cancelled())]
    result = run("retry", "an-earlier-turn", "--json")
    assert result.stdout.splitlines() == numbered(queued(1), cancelled())
    assert (result.stderr, result.exit_code) == ("", 2)


def test_a_retry_that_is_refused(fake_api: FakeApi, run: Run):
    fake_api.script = [problem(409, "not_retryable", "The turn is done.")]
    result = run("retry", TURN)
    assert result.stderr == "turnkeeper: The turn is done. (not_retryable)\n"
    assert (result.stdout, result.exit_code) == ("", 1)


@pytest.mark.parametrize("seconds", ["0", "0.01"])
def test_a_turn_is_cancelled_after_a_time(seconds: str, fake_api: FakeApi, run: Run):
    fake_api.script = [silent(queued(0), text("Half"), end=cancelled())]
    result = run("ask", "Hi", "--cancel-after", seconds)
    assert result.stdout == "Half\n"
    assert "cancelling …" in result.stderr
    assert result.exit_code == 2
    assert fake_api.paths() == ["/turns/stream", f"/turns/{TURN}/cancel"]


def test_a_turn_that_ends_in_time_is_not_cancelled(fake_api: FakeApi, run: Run):
    fake_api.script = [stream(queued(0), text("Hello"), done())]
    result = run("ask", "Hi", "--cancel-after", "3600", "--json")
    assert len(result.stdout.splitlines()) == 3
    assert (result.stderr, result.exit_code) == ("", 0)
    assert fake_api.paths() == ["/turns/stream"]


def test_a_turn_that_is_cancelled_too_late_is_done(fake_api: FakeApi, run: Run):
    fake_api.script = [silent(queued(0), text("Hello"), end=done())]
    fake_api.cancels = [json_reply({**CANCELLING, "status": "done"})]
    assert run("ask", "Hi", "--cancel-after", "0").exit_code == 0


def test_a_cancel_gets_through_when_the_connection_breaks(fake_api: FakeApi, run: Run):
    fake_api.script = [silent(queued(0), end=cancelled())]
    fake_api.cancels = [HANG_UP, problem(503, "redis_away", "Not now."), *fake_api.cancels]
    assert run("ask", "Hi", "--cancel-after", "0").exit_code == 2


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon", ""])
def test_a_time_that_cannot_be_one(seconds: str, fake_api: FakeApi, run: Run):
    result = run("ask", "Hi", "--cancel-after", seconds)
    assert "--cancel-after" in result.stderr
    assert result.exit_code == 1
    assert fake_api.asked == []
