"""One process that was started here: what it says, how it ends."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, STDOUT, Process
from contextlib import ExitStack, suppress
from typing import Self

from api.client.terminal import preview
from api.local.console import Console
from api.local.outlet import Outlet
from api.local.part import Part
from api.local.tether import tethered
from shared.reasons import HEAD

STOP_S = 15.0
"""More than the 10 s in which the worker promises to stop."""
REASON_WIDTH = 300
LINGER_S = 1.0
"""For what is still in the pipe, which a process of an agent may hold open."""


class Child:
    """A process in a session of its own: Ctrl-C in the terminal reaches only its parent."""

    def __init__(self, part: Part, process: Process, outlet: Outlet, console: Console) -> None:
        self.name = part.name
        self.pid = process.pid
        self._hushed = part.hushed
        self._process = process
        self._outlet = outlet
        self._console = console
        self._reason = self._last_line = ""
        self._telling = asyncio.create_task(self._tell())

    @classmethod
    async def start(cls, part: Part, console: Console) -> Self:
        """Starts the process; raises OSError."""
        outlet = await Outlet.open()
        with ExitStack() as failure:
            failure.callback(outlet.close)
            try:
                process = await asyncio.create_subprocess_exec(
                    *tethered(part.command),
                    env={**os.environ, **part.environment},
                    stdin=DEVNULL,
                    stdout=outlet.end,
                    stderr=STDOUT,
                    pass_fds=part.fds,
                    start_new_session=True,
                )
            finally:
                outlet.leave_end()
            failure.pop_all()
        return cls(part, process, outlet, console)

    async def obituary(self) -> str:
        """Waits for its end; answers how it came about."""
        code = await self._process.wait()
        await asyncio.wait({self._telling}, timeout=LINGER_S)
        if code < 0:
            return f"{self.name} was ended by {_name_signal(-code)}"
        reason = preview(self._reason or self._last_line, REASON_WIDTH) or "it said nothing"
        return f"{self.name} ended with exit code {code}: {reason}"

    async def stop(self) -> None:
        """Tells it to stop and waits; ends it by force after STOP_S, and what it left behind."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                # Not `terminate`, which may take the exit code away from who waits for it.
                os.kill(self._process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_S):
                await self._process.wait()
        except TimeoutError:
            self._console.tell(self.name, f"has not stopped within {STOP_S:.0f} s: ended by force")
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        await asyncio.wait({self._telling}, timeout=LINGER_S)
        self._telling.cancel()
        await asyncio.wait({self._telling})
        self._outlet.close()

    async def _tell(self) -> None:
        async for line in self._outlet.lines():
            if not self._hushed or self._hushed not in line:
                self._console.tell(self.name, line)
            self._last_line = line.strip() or self._last_line
            if line.startswith(HEAD):
                self._reason = line.removeprefix(HEAD)


def _name_signal(number: int) -> str:
    """The name, if it has one: most of the real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
