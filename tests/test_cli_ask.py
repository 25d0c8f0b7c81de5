"""A turn that is asked or followed: what is shown of it, on which stream, and how it exits."""

import json

from shared.chunks import Done
from shared.summary import Summary
from tests.client_made import rewind
from tests.fake_api import THREAD, TURN, FakeApi, Reply, events, numbered
from tests.terminal import (
    FIGURES,
    Run,
    call,
    cancelled,
    done,
    failed,
    outcome,
    queued,
    stream,
    text,
)

UNKNOWN = (
    '{"seq":1,"turn_id":"t","type":"mood","content":"\\u001b","completed":false,"metadata":{}}'
)


def test_the_answer_goes_to_stdout_and_all_else_to_stderr(fake_api: FakeApi, run: Run):
    fake_api.script = [
        stream(
            queued(2, 31.6),
            queued(1),
            text("I look ", "m1"),
            text("it up.", "m1"),
            call(query="a\nb"),
            outcome("two\nlines"),
            text("It is ", "m2"),
            text("Tuesday.", "m2"),
            done(),
        )
    ]
    result = run("ask", "What day is it?")
    assert result.stdout == "I look it up.\nIt is Tuesday.\n"
    assert result.stderr.splitlines() == [
        f"turn {TURN}: 2 turns ahead, starts in about 32 s",
        f"turn {TURN}: 1 turn ahead",
        '-> search {"query": "a\\nb"}',
        "<- search ok in 0.3 s: two lines",
        f"done in 3.2 s, {FIGURES}",
        f"thread {THREAD}",
    ]
    assert result.exit_code == 0


def test_the_turn_is_asked_as_told(fake_api: FakeApi, run: Run):
    fake_api.script = [stream(done())]
    run("ask", "--thread", "t1", "--agent", "chat", "-", input="from a pipe: é\n")
    asked = json.loads(fake_api.asked[0].body)
    assert asked == {"text": "from a pipe: é\n", "thread_id": "t1", "agent": "chat"}


def test_figures_that_nobody_stated_are_not_made_up(fake_api: FakeApi, run: Run):
    fake_api.script = [stream(Done(turn_id=TURN, metadata=Summary(elapsed_s=1, queued_s=0)))]
    assert run("ask", "Hi").stderr.splitlines()[0] == (
        "done in 1.0 s, 0 model calls, tokens: n/a in, n/a cached, n/a out, context: n/a of n/a"
    )


def test_an_error_is_one_line_and_exit_1(fake_api: FakeApi, run: Run):
    fake_api.script = [stream(text("Half an ans"), failed())]
    result = run("ask", "Hi")
    assert result.stdout == "Half an ans\n"
    lines = result.stderr.splitlines()
    assert lines[0] == "turnkeeper: The server said 500. (model_error)"
    assert lines[1].startswith("failed in 1.0 s")
    assert lines[1].endswith(", 1 message rolled back")
    assert result.exit_code == 1


def test_a_cancelled_turn_exits_2(fake_api: FakeApi, run: Run):
    fake_api.script = [stream(cancelled())]
    result = run("follow", TURN)
    assert result.stderr.startswith("cancelled in 1.0 s")
    assert ", 3 messages rolled back\n" in result.stderr
    assert result.exit_code == 2
    assert fake_api.asked[0].path == f"/turns/{TURN}/events"


def test_json_is_passed_on_as_received(fake_api: FakeApi, run: Run):
    lines = [UNKNOWN, *numbered(queued(0), text("é\x1b[2J"), done(), start=2)]
    fake_api.script = [Reply(events(*lines))]
    result = run("ask", "Hi", "--json")
    assert result.stdout.splitlines() == lines
    assert result.stderr == ""
    assert result.exit_code == 0


RESUMED = queued(0), text("It is Tues"), rewind(1), queued(0), text("It is Friday."), done()


def test_a_turn_that_was_broken_off_is_shown_to_its_end(fake_api: FakeApi, run: Run):
    fake_api.script = [stream(*RESUMED)]
    result = run("ask", "What day is it?")
    assert result.stdout == "It is Tues\nIt is Friday.\n"
    assert result.stderr.splitlines()[:3] == [
        f"turn {TURN}: 0 turns ahead",
        "the worker was lost, the turn goes on; "
        'what follows replaces the answer from "It is Tues" on',
        f"turn {TURN}: 0 turns ahead",
    ]
    assert result.exit_code == 0


def test_json_has_the_rewind_and_what_it_makes_void(fake_api: FakeApi, run: Run):
    fake_api.script = [stream(*RESUMED)]
    result = run("follow", TURN, "--json")
    assert result.stdout.splitlines() == numbered(*RESUMED)
    assert result.stderr == ""


def test_unknown_chunks_are_passed_over_for_people(fake_api: FakeApi, run: Run):
    fake_api.script = [Reply(events(UNKNOWN, *numbered(text("Hello"), done(), start=2)))]
    result = run("ask", "Hi")
    assert result.stdout == "Hello\n"
    assert len(result.stderr.splitlines()) == 2


def test_an_end_of_an_unknown_type_is_no_success(fake_api: FakeApi, run: Run):
    fake_api.script = [Reply(events(UNKNOWN.replace("false", "true")))]
    result = run("ask", "Hi")
    assert "ended: mood" in result.stderr
    assert result.exit_code == 1


def test_a_broken_connection_shows_on_stderr_alone(fake_api: FakeApi, run: Run):
    first, second, end = numbered(text("Good "), text("morning"), done())
    fake_api.script = [Reply(events(first), cut=True), Reply(events(second, end))]
    result = run("ask", "Hi")
    assert result.stdout == "Good morning\n"
    assert "trying again" in result.stderr
    assert result.exit_code == 0


def test_model_text_cannot_command_the_terminal(fake_api: FakeApi, run: Run):
    nasty = "a\x1b]0;title\x07b\x9b31mc\rd\x7f\te\nf"
    fake_api.script = [stream(call(x=nasty), outcome(nasty), text(nasty), done())]
    result = run("ask", "Hi")
    assert result.stdout == "a]0;titleb31mcd\te\nf\n"
    assert not any(ord(sign) < 32 and sign != "\n" for sign in result.stderr)


def test_lone_surrogates_are_shown_as_a_sign(fake_api: FakeApi, run: Run):
    lines = numbered(text("half: HALF"), done())
    fake_api.script = [Reply(events(lines[0].replace("HALF", "\\ud83d"), lines[1]))]
    assert run("ask", "Hi").stdout == "half: \ufffd\n"
