"""Ctrl-C in a terminal: it cancels one's own turn, and leaves those that are only watched."""

import signal
import subprocess
import sys

import pytest

from shared.chunks import Chunk
from tests.command import command, press_ctrl_c, press_ctrl_c_again, read_until, run
from tests.fake_api import (
    CANCELLING,
    HANG_UP,
    TURN,
    FakeApi,
    Reply,
    events,
    json_reply,
    numbered,
    problem,
)
from tests.terminal import cancelled, done, failed, queued, silent, text

ASK = ["ask", "Hi"]
FOLLOW_IT = f"follow it with: turnkeeper follow {TURN}\n"
RETRIED = json_reply({"turn_id": TURN, "thread_id": "th-1"}, 202)


@pytest.mark.parametrize(
    ("end", "exit_code", "said"),
    [
        (cancelled(), 2, "3 messages rolled back"),
        (done(), 0, "done in"),
        (failed(), 1, "1 message rolled back"),
    ],
    ids=["cancelled", "done before", "failed before"],
)
def test_the_first_cancels_the_turn_and_follows_it_to_its_end(
    end: Chunk, exit_code: int, said: str, fake_api: FakeApi
):
    fake_api.script = [silent(queued(1), text("Half"), end=end)]
    with command(fake_api, *ASK) as process:
        assert process.stdout
        assert process.stdout.read(4) == b"Half"
        press_ctrl_c(process)
        answer, notes = process.communicate()
    assert process.returncode == exit_code
    assert answer == b"\n"
    assert "cancelling …\n" in notes.decode()
    assert said in notes.decode()
    assert fake_api.paths() == ["/turns/stream", f"/turns/{TURN}/cancel"]


def test_json_stays_json(fake_api: FakeApi):
    fake_api.script = [silent(queued(1), text("Half"), end=cancelled())]
    with command(fake_api, *ASK, "--json") as process:
        assert process.stdout
        first = process.stdout.readline()
        press_ctrl_c(process)
        rest, _ = process.communicate()
    assert process.returncode == 2
    assert (first + rest).decode().splitlines() == numbered(queued(1), text("Half"), cancelled())


def test_a_second_one_leaves_at_once(fake_api: FakeApi):
    fake_api.script = [Reply(events(*numbered(queued(1))), hang=True)]
    fake_api.cancels = [json_reply(CANCELLING, 202)._replace(late=True)]
    with command(fake_api, *ASK) as process:
        read_until(process, "1 turn ahead")
        press_ctrl_c(process)
        read_until(process, "cancelling")
        press_ctrl_c_again(process)
        answer, notes = process.communicate()
    assert process.returncode == 130
    assert answer == b""
    assert notes.decode() == f"turnkeeper: the turn may go on; {FOLLOW_IT}"


def test_a_key_that_bounces_is_pressed_once(fake_api: FakeApi):
    fake_api.script = [silent(queued(1), end=cancelled())]
    with command(fake_api, *ASK) as process:
        read_until(process, "1 turn ahead")
        for _ in range(3):
            press_ctrl_c(process)
        process.communicate()
    assert process.returncode == 2
    assert fake_api.paths("/cancel") == [f"/turns/{TURN}/cancel"]


@pytest.mark.parametrize("arguments", [ASK, ["follow", TURN]])
def test_however_many_there_are_it_ends_without_a_fuss(arguments: list[str], fake_api: FakeApi):
    fake_api.script = [Reply(events(*numbered(queued(1))), hang=True)]
    fake_api.cancels = [Reply(late=True)]
    with command(fake_api, *arguments) as process:
        read_until(process, "1 turn ahead")
        while process.poll() is None:
            press_ctrl_c(process)
        _, notes = process.communicate()
    assert process.returncode in (130, -signal.SIGINT)
    assert b"Traceback" not in notes
    assert b"Exception" not in notes


@pytest.mark.parametrize("first", [ASK, ["retry", "an-earlier-turn"]])
@pytest.mark.parametrize(
    "unclear",
    [None, HANG_UP, problem(503, "redis_away", "Not now.")],
    ids=["a late answer", "no answer", "trouble"],
)
def test_a_turn_that_is_not_known_yet_is_cancelled_when_it_is(
    first: list[str], unclear: Reply | None, fake_api: FakeApi
):
    is_retry = first[0] == "retry"
    posted = [] if unclear is None else [unclear]
    posted += [RETRIED] if is_retry else []
    posted += [silent(queued(0), end=cancelled())]
    fake_api.script = [posted[0]._replace(late=True), *posted[1:]]
    with command(fake_api, *first) as process:
        fake_api.await_asked("/retry" if is_retry else "/stream")
        press_ctrl_c(process)
        read_until(process, "cancelling")
        assert fake_api.paths("/cancel") == []
        fake_api.let_go()
        process.communicate()
    assert process.returncode == 2
    assert fake_api.paths("/cancel") == [f"/turns/{TURN}/cancel"]
    posts = [asked for asked in fake_api.asked if "idempotency-key" in asked.headers]
    assert len(posts) == (1 if unclear is None else 2)
    assert len({asked.headers["idempotency-key"] for asked in posts}) == 1


def test_whoever_leaves_before_the_turn_is_known_is_told_where_to_look(fake_api: FakeApi):
    fake_api.script = [Reply(late=True)]
    with command(fake_api, *ASK) as process:
        fake_api.await_asked("/stream")
        press_ctrl_c(process)
        read_until(process, "cancelling")
        press_ctrl_c_again(process)
        _, notes = process.communicate()
    assert process.returncode == 130
    assert notes == b"turnkeeper: the turn may have been accepted; see turnkeeper queue\n"


def test_a_turn_that_is_only_watched_goes_on(fake_api: FakeApi):
    fake_api.script = [Reply(events(*numbered(queued(1), text("Half"))), hang=True)]
    with command(fake_api, "follow", TURN) as process:
        assert process.stdout
        assert process.stdout.read(4) == b"Half"
        press_ctrl_c(process)
        answer, notes = process.communicate()
    assert process.returncode == 130
    assert answer == b"\n"
    assert notes.decode().endswith(f"turnkeeper: the turn goes on; {FOLLOW_IT}")
    assert fake_api.paths("/cancel") == []


def test_what_runs_in_the_background_of_a_script_does_not_hear_it(fake_api: FakeApi):
    late = Reply(events(*numbered(done(), start=2)), late=True)
    fake_api.script = [Reply(events(*numbered(queued(1))), cut=True), late]
    in_background = f'trap "" INT; exec {sys.executable} -m api.cli ask Hi'
    with run(["sh", "-c", in_background], fake_api) as process:
        fake_api.await_asked("/events")
        press_ctrl_c(process)
        fake_api.let_go()
        process.communicate()
    assert process.returncode == 0
    assert fake_api.paths("/cancel") == []


@pytest.mark.parametrize("arguments", [ASK, ["follow", TURN]])
def test_after_the_end_it_does_nothing(arguments: list[str], fake_api: FakeApi):
    fake_api.script = [Reply(events(*numbered(queued(0), done())))]
    with command(fake_api, *arguments) as process:
        read_until(process, "done in")
        while process.poll() is None:
            press_ctrl_c(process)
    assert process.returncode == 0


def test_nothing_that_takes_long_is_imported_before_it_is_taken_care_of():
    look = "import sys, api.cli; print(sorted({'click', 'httpx', 'asyncio'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", look]) == b"[]\n"
