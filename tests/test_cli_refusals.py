"""When nothing comes of a command: what it says, and exit code 1."""

from collections.abc import Iterator

import pytest

from tests.fake_api import TURN, FakeApi, problem, run_fake_api
from tests.terminal import Run, open_terminal


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with run_fake_api() as api:
        yield api


@pytest.fixture
def run(api: FakeApi) -> Run:
    return open_terminal(api)


@pytest.mark.parametrize(
    "arguments", [("ask", "Hi"), ("follow", TURN), ("queue",), ("status", "--json")], ids=str
)
def test_a_refusal_is_one_line(arguments: tuple[str, ...], api: FakeApi, run: Run):
    api.script = [problem(401, "unauthorized", "Say who\nyou are.\x1b[2J")]
    result = run(*arguments)
    assert result.stderr == "turnkeeper: Say who you are.[2J (unauthorized)\n"
    assert result.stdout == ""
    assert result.exit_code == 1


def test_text_that_is_no_unicode_is_left_to_the_server(api: FakeApi, run: Run):
    api.script = [problem(422, "bad_text", "The text holds a lone surrogate.")]
    for arguments, typed in ((["ask", "\udcff"], None), (["ask", "-"], b"\xff")):
        result = run(*arguments, input=typed)
        assert result.stderr == "turnkeeper: The text holds a lone surrogate. (bad_text)\n"
        assert result.exit_code == 1
    assert [asked.body for asked in api.asked] == [b'{"text": "\\udcff"}'] * 2


def test_a_server_that_is_not_there_is_one_line(api: FakeApi, run: Run):
    api.stop()
    result = run("status")
    assert result.stderr.startswith(f"turnkeeper: cannot reach {api.url}: ")
    assert result.stderr.count("\n") == 1
    assert result.exit_code == 1


@pytest.mark.parametrize("arguments", [("ask",), ("ask", "a", "b"), ("follow", "--no"), ("nay",)])
def test_a_wrong_call_does_not_look_like_a_cancelled_turn(arguments: tuple[str, ...], run: Run):
    result = run(*arguments)
    assert "Usage:" in result.stderr
    assert result.exit_code == 1
