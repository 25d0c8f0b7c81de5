"""The commands as a person and a script meet them."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from api.cli import main
from api.client.event import parse_event
from api.client.transcript import Transcript
from shared.chunks import (
    Cancelled,
    CancelSummary,
    Chunk,
    Done,
    Error,
    ErrorSummary,
    Place,
    Queued,
    Source,
    Summary,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
    ToolUse,
)
from shared.usage import CallUsage, TurnUsage
from tests.fake_api import (
    THREAD,
    TURN,
    FakeApi,
    Reply,
    events,
    json_reply,
    numbered,
    problem,
    run_fake_api,
)

USAGE = TurnUsage(
    calls=[CallUsage(call_index=1, input_tokens=50, n_ctx=4096)],
    model_calls=2,
    prompt_tokens_total=80,
    cache_read_total=39,
    completion_tokens_total=16,
)
FIGURES = "2 model calls, tokens: 80 in, 39 cached, 16 out, context: 50 of 4096"
UNKNOWN = (
    '{"seq":1,"turn_id":"t","type":"mood","content":"\\u001b","completed":false,"metadata":{}}'
)

ROOT = Path(__file__).parents[1]

Run = Callable[..., Result]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with run_fake_api() as api:
        yield api


@pytest.fixture
def run(api: FakeApi) -> Run:
    def invoke(*arguments: str, **options: Any) -> Result:
        env = {"TURNKEEPER_URL": api.url, "API_TOKEN": ""}
        return CliRunner().invoke(main, arguments, env=env, **options)

    return invoke


def queued(position: int, eta_s: float | None = None) -> Chunk:
    return Queued(turn_id=TURN, metadata=Place(position=position, eta_s=eta_s))


def text(content: str, message_id: str = "m1", *agent: str) -> Chunk:
    return Text(turn_id=TURN, content=content, metadata=Source(message_id, list(agent)))


def call(**args: Any) -> Chunk:
    return ToolUse(
        turn_id=TURN,
        content="search",
        metadata=ToolCall(call_id="c1", name="search", args=args),
    )


def result(content: str) -> Chunk:
    outcome = ToolOutcome(call_id="c1", name="search", status="ok", truncated=False, elapsed_s=0.3)
    return ToolResult(turn_id=TURN, content=content, metadata=outcome)


def done() -> Chunk:
    summary = Summary(elapsed_s=3.21, queued_s=0.1, model_calls=2, usage=USAGE, context_tokens=50)
    return Done(turn_id=TURN, metadata=summary)


def stream(*chunks: Chunk) -> Reply:
    return Reply(events(*numbered(*chunks)))


def test_the_answer_goes_to_stdout_and_all_else_to_stderr(api: FakeApi, run: Run):
    api.script = [
        stream(
            queued(2, 31.6),
            queued(1),
            text("I look ", "m1"),
            text("it up.", "m1"),
            call(query="a\nb"),
            result("two\nlines"),
            text("It is ", "m2"),
            text("Tuesday.", "m2"),
            done(),
        )
    ]
    result_ = run("ask", "What day is it?")
    assert result_.stdout == "I look it up.\nIt is Tuesday.\n"
    assert result_.stderr.splitlines() == [
        f"turn {TURN}: 2 turns ahead, starts in about 32 s",
        f"turn {TURN}: 1 turn ahead",
        '-> search {"query": "a\\nb"}',
        "<- search ok in 0.3 s: two lines",
        f"done in 3.2 s, {FIGURES}",
        f"thread {THREAD}",
    ]
    assert result_.exit_code == 0


def test_the_turn_is_asked_as_told(api: FakeApi, run: Run):
    api.script = [stream(done())]
    run("ask", "--thread", "t1", "--agent", "chat", "-", input="from a pipe: é\n")
    asked = json.loads(api.asked[0].body)
    assert asked == {"text": "from a pipe: é\n", "thread_id": "t1", "agent": "chat"}


def test_figures_that_nobody_stated_are_not_made_up(api: FakeApi, run: Run):
    api.script = [stream(Done(turn_id=TURN, metadata=Summary(elapsed_s=1, queued_s=0)))]
    assert run("ask", "Hi").stderr.splitlines()[0] == (
        "done in 1.0 s, 0 model calls, tokens: n/a in, n/a cached, n/a out, context: n/a of n/a"
    )


def test_an_error_is_one_line_and_exit_1(api: FakeApi, run: Run):
    summary = ErrorSummary(elapsed_s=1, queued_s=0, code="model_error", rolled_back_messages=1)
    end = Error(turn_id=TURN, content="The server said 500.", metadata=summary)
    api.script = [stream(text("Half an ans"), end)]
    result_ = run("ask", "Hi")
    assert result_.stdout == "Half an ans\n"
    lines = result_.stderr.splitlines()
    assert lines[0] == "turnkeeper: The server said 500. (model_error)"
    assert lines[1].startswith("failed in 1.0 s")
    assert lines[1].endswith(", 1 message rolled back")
    assert result_.exit_code == 1


def test_a_cancelled_turn_exits_2(api: FakeApi, run: Run):
    summary = CancelSummary(elapsed_s=1, queued_s=0)
    api.script = [stream(Cancelled(turn_id=TURN, metadata=summary))]
    result_ = run("follow", TURN)
    assert result_.stderr.startswith("cancelled in 1.0 s")
    assert result_.exit_code == 2
    assert api.asked[0].path == f"/turns/{TURN}/events"


def test_json_is_passed_on_as_received(api: FakeApi, run: Run):
    lines = [UNKNOWN, *numbered(queued(0), text("é\x1b[2J"), done(), start=2)]
    api.script = [Reply(events(*lines))]
    result_ = run("ask", "Hi", "--json")
    assert result_.stdout.splitlines() == lines
    assert result_.stderr == ""
    assert result_.exit_code == 0


def test_unknown_chunks_are_passed_over_for_people(api: FakeApi, run: Run):
    api.script = [Reply(events(UNKNOWN, *numbered(text("Hello"), done(), start=2)))]
    result_ = run("ask", "Hi")
    assert result_.stdout == "Hello\n"
    assert len(result_.stderr.splitlines()) == 2


def test_an_end_of_an_unknown_type_is_no_success(api: FakeApi, run: Run):
    api.script = [Reply(events(UNKNOWN.replace("false", "true")))]
    result_ = run("ask", "Hi")
    assert "ended: mood" in result_.stderr
    assert result_.exit_code == 1


def test_a_broken_connection_shows_on_stderr_alone(api: FakeApi, run: Run):
    first, second, end = numbered(text("Good "), text("morning"), done())
    api.script = [Reply(events(first), cut=True), Reply(events(second, end))]
    result_ = run("ask", "Hi")
    assert result_.stdout == "Good morning\n"
    assert "trying again" in result_.stderr
    assert result_.exit_code == 0


def test_model_text_cannot_command_the_terminal(api: FakeApi, run: Run):
    nasty = "a\x1b]0;title\x07b\x9b31mc\rd\x7f\te\nf"
    api.script = [stream(call(x=nasty), result(nasty), text(nasty), done())]
    result_ = run("ask", "Hi")
    assert result_.stdout == "a]0;titleb31mcd\te\nf\n"
    assert not any(ord(sign) < 32 and sign != "\n" for sign in result_.stderr)


def test_lone_surrogates_are_shown_as_a_sign(api: FakeApi, run: Run):
    lines = numbered(text("half: HALF"), done())
    api.script = [Reply(events(lines[0].replace("HALF", "\\ud83d"), lines[1]))]
    assert run("ask", "Hi").stdout == "half: \ufffd\n"


def test_text_that_is_no_unicode_is_left_to_the_server(api: FakeApi, run: Run):
    api.script = [problem(422, "bad_text", "The text holds a lone surrogate.")]
    for arguments, typed in ((["ask", "\udcff"], None), (["ask", "-"], b"\xff")):
        result_ = run(*arguments, input=typed)
        assert result_.stderr == "turnkeeper: The text holds a lone surrogate. (bad_text)\n"
        assert result_.exit_code == 1
    assert [asked.body for asked in api.asked] == [b'{"text": "\\udcff"}'] * 2


@pytest.mark.parametrize(
    "arguments", [("ask", "Hi"), ("follow", TURN), ("queue",), ("status", "--json")], ids=str
)
def test_a_refusal_is_one_line(arguments: tuple[str, ...], api: FakeApi, run: Run):
    api.script = [problem(401, "unauthorized", "Say who\nyou are.\x1b[2J")]
    result_ = run(*arguments)
    assert result_.stderr == "turnkeeper: Say who you are.[2J (unauthorized)\n"
    assert result_.stdout == ""
    assert result_.exit_code == 1


def test_a_server_that_is_not_there_is_one_line(api: FakeApi, run: Run):
    api.stop()
    result_ = run("status")
    assert result_.stderr.startswith(f"turnkeeper: cannot reach {api.url}: ")
    assert result_.stderr.count("\n") == 1
    assert result_.exit_code == 1


@pytest.mark.parametrize("arguments", [("ask",), ("ask", "a", "b"), ("follow", "--no"), ("nay",)])
def test_a_wrong_call_does_not_look_like_a_cancelled_turn(arguments: tuple[str, ...], run: Run):
    result_ = run(*arguments)
    assert "Usage:" in result_.stderr
    assert result_.exit_code == 1


def turn(number: int, status: str, position: int | None, **fields: Any) -> dict[str, Any]:
    ids = {"turn_id": f"turn-{number}", "thread_id": f"th-{number}", "agent": "chat"}
    return {**ids, "status": status, "position": position, "eta_s": None, **fields}


QUEUE = {
    "running": turn(1, "running", 0, text="Hello\nthere"),
    "waiting": [turn(2, "queued", 1, text="x" * 80), turn(3, "queued", 2, input={"id": 7})],
    "awaiting_decision": [turn(4, "awaiting_decision", None, text="May I?")],
    "depth": 2,
    "limit": 32,
    "worker": "alive",
}


def test_the_queue_is_a_table(api: FakeApi, run: Run):
    api.script = [json_reply(QUEUE)]
    assert run("queue").stdout.splitlines() == [
        "2 of 32 places taken, worker alive",
        "place              turn    thread  agent  input",
        "running            turn-1  th-1    chat   Hello there",
        f"1                  turn-2  th-2    chat   {'x' * 57}...",
        "2                  turn-3  th-3    chat   {'id': 7}",
        "awaiting decision  turn-4  th-4    chat   May I?",
    ]


def test_an_empty_queue_is_a_line(api: FakeApi, run: Run):
    api.script = [json_reply({**QUEUE, "running": None, "waiting": [], "awaiting_decision": []})]
    assert run("queue").stdout == "2 of 32 places taken, worker alive\n"


def test_a_queue_that_cannot_be_read(api: FakeApi, run: Run):
    api.script = [json_reply({"depth": 0})]
    result_ = run("queue")
    assert result_.stderr.startswith("turnkeeper: the queue cannot be read: ")
    assert result_.exit_code == 1


STATUS = {
    "model": "smol_lm",
    "n_ctx": 4096,
    "slot": {"busy": True, "prompt_tokens": 12, "decoded": None},
    "worker": {"alive": True, "turn_id": None, "since": 1.5},
    "queue_depth": 0,
    "llama": None,
}


def test_the_status_is_a_list(api: FakeApi, run: Run):
    api.script = [json_reply(STATUS)]
    assert run("status").stdout.splitlines() == [
        "model        smol_lm",
        "n ctx        4096",
        "slot         busy yes, prompt tokens 12, decoded n/a",
        "worker       alive yes, turn id n/a, since 1.5",
        "queue depth  0",
        "llama        n/a",
    ]


@pytest.mark.parametrize(("command", "body"), [("queue", QUEUE), ("status", STATUS)])
def test_json_as_answered(command: str, body: dict[str, Any], api: FakeApi, run: Run):
    api.script = [json_reply(body)]
    assert run(command, "--json").stdout == f"{json.dumps(body)}\n"


class Screen(io.StringIO):
    """A terminal, on which both streams meet."""

    def isatty(self) -> bool:
        return True


def write_down(screen: io.StringIO, *chunks: Chunk) -> str:
    transcript = Transcript(screen, screen)
    for line in numbered(*chunks):
        transcript.show(parse_event(line))
    return screen.getvalue()


def test_on_a_terminal_notes_begin_on_a_line_of_their_own():
    shown = write_down(Screen(), text("I look"), call(), text("It is", "m2"), done())
    assert shown == f"I look\n-> search {{}}\nIt is\ndone in 3.2 s, {FIGURES}\n"


def test_what_sub_agents_say_is_not_the_answer():
    assert write_down(io.StringIO(), text("aside", "m1", "helper"), text("Yes\n", "m2")) == "Yes\n"


@contextmanager
def command(api: FakeApi, *arguments: str, **env: str) -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-m", "api.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "TURNKEEPER_URL": api.url, **env},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_leaves_the_turn_alone(api: FakeApi):
    api.script = [Reply(events(*numbered(queued(1), text("Half"))), hang=True)]
    with command(api, "ask", "Hi") as process:
        assert process.stdout
        assert process.stdout.read(4) == b"Half"
        process.send_signal(signal.SIGINT)
        answer, notes = process.communicate()
    assert process.returncode == 130
    assert answer == b"\n"
    assert notes.decode().endswith(f"follow it with: turnkeeper follow {TURN}\n")
    assert len(api.asked) == 1


def test_a_stdout_that_cannot_write_everything(api: FakeApi):
    lines = numbered(text("é→"), done())
    api.script = [Reply(events(*lines))]
    with command(api, "ask", "Hi", PYTHONIOENCODING="ascii") as process:
        assert process.communicate()[0] == b"??\n"
    with command(api, "ask", "Hi", "--json", PYTHONIOENCODING="ascii") as process:
        assert process.communicate()[0].decode().splitlines() == lines
        assert process.returncode == 0


def test_a_reader_that_goes_away(api: FakeApi):
    api.script = [stream(*(text("x" * 4096) for _ in range(500)), done())]
    with command(api, "ask", "Hi") as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(1)
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait() == 1


@pytest.mark.parametrize(
    ("arguments", "module", "handed_on"),
    [
        (["api"], "api", []),
        (["worker"], "worker", []),
        (["worker", "--wait"], "worker", ["--wait"]),
    ],
    ids=str,
)
def test_a_process_takes_the_command_over(
    arguments: list[str], module: str, handed_on: list[str], api: FakeApi, tmp_path: Path
):
    program = "import json, os, sys\nprint(json.dumps([os.getpid(), sys.argv[1:]]))"
    folder = tmp_path / module
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "__main__.py").write_text(program)
    with command(api, *arguments, PYTHONPATH=str(tmp_path)) as process:
        said, _ = process.communicate()
    assert json.loads(said) == [process.pid, handed_on]
