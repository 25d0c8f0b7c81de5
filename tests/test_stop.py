"""The worker's way out, in processes that are nothing but that."""

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from worker.stop import FAREWELL_S, STOP_S

IN_GOOD_TIME_S = 30

BEGIN = """
import os, signal, sqlite3, sys, threading, time
from worker import stop

stop.STOP_S = stop.FAREWELL_S = 0.2
stopping = stop.Stop()

def say(word):
    os.write(1, f"{word}\\n".encode())
"""
WAIT_IN_SQLITE = """
holder = sqlite3.connect(sys.argv[1], isolation_level=None)
holder.execute("BEGIN EXCLUSIVE")
say("ready")
sqlite3.connect(sys.argv[1], timeout=3600).execute("CREATE TABLE never (x)")
"""
END_IN_ORDER = """
stop.STOP_S = 3600
told = threading.Event()
with stopping.in_order(lambda: (say("told"), told.set()), lambda: say("farewell")):
    say("ready")
    told.wait()
    sys.stdin.read()
stopping.end(0)
say("ends")
sys.stdin.read()
"""
NEVER_END = """
with stopping.in_order(lambda: say("told"), lambda: say("farewell")):
    say("ready")
    while True:
        pass
"""
NOT_EVEN_SAY_FAREWELL = NEVER_END.replace('say("farewell")', "time.sleep(3600)")
HANG_AT_EXIT = """
threading.Thread(target=time.sleep, args=(3600,)).start()
stopping.end(3)
say("ready")
sys.exit(3)
"""
FORK = """
with stopping.in_order(lambda: say("told"), lambda: say("farewell")):
    if not (child := os.fork()):
        time.sleep(3600)
    os.kill(child, signal.SIGTERM)
    say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
EXPECT_A_SIGNAL = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.kill(os.getpid(), signal.SIGTERM)
os.execv(sys.executable, [sys.executable, "-m", "worker"])
"""


@contextmanager
def running(program: str, *arguments: str) -> Generator["subprocess.Popen[str]"]:
    """The program, of which nothing is left at the end."""
    command = [sys.executable, "-c", program, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def hear(process: "subprocess.Popen[str]") -> str:
    """The next line that it says."""
    assert process.stdout
    return process.stdout.readline().strip()


def end(process: "subprocess.Popen[str]") -> tuple[int, list[str], str]:
    """Exit code, what else it says, and what it complains of."""
    said, complaint = process.communicate(timeout=IN_GOOD_TIME_S)
    return process.returncode, said.split(), complaint


def test_the_worker_keeps_its_promise() -> None:
    assert STOP_S + FAREWELL_S < 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_has_nothing_to_end_in_order_ends_at_once(tmp_path: Path, number: int) -> None:
    with running(BEGIN + WAIT_IN_SQLITE, str(tmp_path / "file")) as process:
        assert hear(process) == "ready"
        process.send_signal(number)
        assert end(process) == (0, [], "")


def test_what_has_is_told_once_and_not_disturbed(tmp_path: Path) -> None:
    with running(BEGIN + END_IN_ORDER) as process:
        assert hear(process) == "ready"
        process.send_signal(signal.SIGTERM)
        assert hear(process) == "told"
        for _ in range(1000):
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
        assert process.stdin
        process.stdin.close()
        process.stdin = None
        assert hear(process) == "ends"
        process.send_signal(signal.SIGINT)
        assert end(process) == (0, [], "")


def test_what_does_not_end_in_order_says_farewell() -> None:
    with running(BEGIN + NEVER_END) as process:
        assert hear(process) == "ready"
        process.send_signal(signal.SIGTERM)
        assert end(process) == (0, ["told", "farewell"], "")


def test_what_cannot_even_say_that_ends_without() -> None:
    with running(BEGIN + NOT_EVEN_SAY_FAREWELL) as process:
        assert hear(process) == "ready"
        process.send_signal(signal.SIGTERM)
        assert end(process) == (0, ["told"], "")


def test_what_ends_by_itself_is_not_held_up_either() -> None:
    with running(BEGIN + HANG_AT_EXIT) as process:
        assert hear(process) == "ready"
        assert end(process) == (3, [], "")


def test_a_process_that_an_agent_forks_is_not_the_worker() -> None:
    with running(BEGIN + FORK) as process:
        assert end(process) == (0, [str(-signal.SIGTERM)], "")


def test_a_signal_that_came_before_the_worker_is_heard() -> None:
    with running(EXPECT_A_SIGNAL) as process:
        assert end(process) == (0, [], "")
