"""What a process does that is forked from the zygote (see zygote.py)."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from pathlib import Path
from socket import socket
from typing import Any, NoReturn, cast

from api.local.tether import PR_SET_PDEATHSIG


def do_nothing() -> None: ...


def run_worker(log: Path, environment: Mapping[str, str], prepare: Callable[[], None]) -> NoReturn:
    """As `python -m worker`, after `prepare`."""
    _begin(log)
    _take(environment)
    from worker.__main__ import main

    prepare()
    sys.argv = ["worker"]
    sys.exit(main())


def run_api(log: Path, environment: Mapping[str, str], listener: socket) -> NoReturn:
    """As `python -m api --fd`."""
    _begin(log)
    _take(environment)
    from api.__main__ import main

    sys.argv = ["api", "--fd", str(listener.detach())]
    sys.exit(main())


def run_program(log: Path, command: list[str]) -> NoReturn:
    """Becomes that program."""
    _begin(log)
    os.execv(command[0], command)


def _begin(log: Path) -> None:
    # The zygote ends once nobody has the other end of this pipe, of which each fork gets a copy.
    alive: int = cast(Any, forkserver)._forkserver._forkserver_alive_fd
    os.close(alive)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for fd in (1, 2):
        os.dup2(output, fd)
    os.close(output)


def _take(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
