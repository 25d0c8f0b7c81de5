"""When nothing comes of a command: what it says, and exit code 1."""

import pytest

from tests.fake_api import TURN, FakeApi, problem
from tests.terminal import Run


@pytest.mark.parametrize(
    "arguments", [("ask", "Hi"), ("follow", TURN), ("queue",), ("status", "--json")], ids=str
)
def test_a_refusal_is_one_line(arguments: tuple[str, ...], fake_api: FakeApi, run: Run):
    fake_api.script = [problem(401, "unauthorized", "Say who\nyou are.\x1b[2J")]
    result = run(*arguments)
    assert result.stderr == "turnkeeper: Say who you are.[2J (unauthorized)\n"
    assert result.stdout == ""
    assert result.exit_code == 1


def test_text_that_is_no_unicode_is_left_to_the_server(fake_api: FakeApi, run: Run):
    fake_api.script = [problem(422, "bad_text", "The text holds a lone surrogate.")]
    for arguments, typed in ((["ask", "\udcff"], None), (["ask", "-"], b"\xff")):
        result = run(*arguments, input=typed)
        assert result.stderr == "turnkeeper: The text holds a lone surrogate. (bad_text)\n"
        assert result.exit_code == 1
    assert [asked.body for asked in fake_api.asked] == [b'{"text": "\\udcff"}'] * 2


def test_a_server_that_is_not_there_is_one_line(fake_api: FakeApi, run: Run):
    fake_api.stop()
    result = run("status")
    assert result.stderr.startswith(f"turnkeeper: cannot reach {fake_api.url}: ")
    assert result.stderr.count("\n") == 1
    assert result.exit_code == 1


@pytest.mark.parametrize("arguments", [("ask",), ("ask", "a", "b"), ("follow", "--no"), ("nay",)])
def test_a_wrong_call_does_not_look_like_a_cancelled_turn(arguments: tuple[str, ...], run: Run):
    result = run(*arguments)
    assert "Usage:" in result.stderr
    assert result.exit_code == 1
