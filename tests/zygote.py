"""Processes that start at once: forked from one that has imported everything.

They are real ones, with an id, signals and an exit code of their own. However this process ends,
the zygote ends with it, and all that was forked ends with the zygote.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from socket import socket

from tests import forked
from tests.until import until

KILLED = -signal.SIGKILL
"""Exit code."""

PRELOADED = ["worker.main", "worker.agents.chat", "api.server", "tests.chaos.crew", "tests.forked"]

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(PRELOADED)


class Forked:
    """A process; `log`: what it says."""

    def __init__(self, process: ForkServerProcess, log: Path) -> None:
        assert process.pid
        self.pid = process.pid
        self._process = process
        self._log = log

    @property
    def exit_code(self) -> int | None:
        """None while it lives."""
        return self._process.exitcode

    @property
    def log(self) -> str:
        """All that it has said, by the name of its log."""
        return self._log.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, if it lives."""
        if self.exit_code is None:
            os.kill(self.pid, number)

    async def wait(self) -> int:
        """The exit code, once it has ended; raises TimeoutError."""
        await until(lambda: self.exit_code is not None)
        assert self.exit_code is not None
        return self.exit_code

    async def kill(self) -> None:
        """Ends it by SIGKILL, if it lives."""
        self.send(signal.SIGKILL)
        await self.wait()


async def fork_worker(
    log: Path, environment: Mapping[str, str], prepare: Callable[[], None] = forked.do_nothing
) -> Forked:
    """`python -m worker` with these variables, after `prepare`, which a pickle can name."""
    return await _fork(log, forked.run_worker, _whole(environment), prepare)


async def fork_api(log: Path, environment: Mapping[str, str], listener: socket) -> Forked:
    """`python -m api` with these variables on a socket that listens already."""
    return await _fork(log, forked.run_api, _whole(environment), listener)


async def fork_program(log: Path, command: list[str]) -> Forked:
    """Any other program."""
    return await _fork(log, forked.run_program, command)


@asynccontextmanager
async def ended(process: Forked) -> AsyncGenerator[Forked]:
    """The process, which has ended at the end: in order, if it was not told how before."""
    try:
        yield process
    finally:
        process.send(signal.SIGTERM)
        await process.wait()


async def _fork(log: Path, target: Callable[..., None], *arguments: object) -> Forked:
    process = _forks.Process(target=target, args=(log, *arguments))
    # In a thread: the first one waits until the zygote has imported everything.
    await asyncio.to_thread(process.start)
    return Forked(process, log)


def _whole(environment: Mapping[str, str]) -> dict[str, str]:
    """The zygote's own environment is that of another test."""
    return {**os.environ, **environment}
