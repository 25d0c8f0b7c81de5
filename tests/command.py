"""A command as the process that it is in a terminal."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from api.client.ctrl_c import BOUNCE_S
from tests.fake_api import FakeApi

ROOT = Path(__file__).parents[1]

Command = subprocess.Popen[bytes]


@contextmanager
def command(api: FakeApi, *arguments: str, **env: str) -> Generator[Command]:
    """`turnkeeper …`, which asks that API."""
    with run([sys.executable, "-m", "api.cli", *arguments], api, **env) as process:
        yield process


@contextmanager
def run(line: list[str], api: FakeApi, **env: str) -> Generator[Command]:
    """Any other command line around it."""
    with subprocess.Popen(
        line,
        bufsize=0,  # `communicate` leaves out what a buffer has read before
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "TURNKEEPER_URL": api.url, "API_TOKEN": "", **env},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def press_ctrl_c(process: Command) -> None:
    """As in a terminal."""
    process.send_signal(signal.SIGINT)


def press_ctrl_c_again(process: Command) -> None:
    """Late enough not to be the first one still."""
    time.sleep(1.2 * BOUNCE_S)
    press_ctrl_c(process)


def read_until(process: Command, word: str) -> str:
    """The lines of standard error up to the first that has that word."""
    assert process.stderr
    lines: list[str] = []
    while not lines or word not in lines[-1]:
        line = process.stderr.readline().decode()
        assert line, lines
        lines.append(line)
    return "".join(lines)
