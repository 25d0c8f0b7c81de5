"""`turnkeeper up` as a process, and all the processes that it has started."""

import asyncio
import os
import re
import signal
import sys
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.until import until

MARK = "TURNKEEPER_TEST"
WITHIN_S = 60
PROGRAMS = {
    "valkey-server": "valkey",
    "-m api.local.llama": "llama",
    "-m worker": "worker",
    "-m api": "api",
}
"""What is in the command line of a part, by which it is known; the longer ones first."""
EMBEDDED = {*PROGRAMS.values()}


class UpProcess:
    """Whose a process is, is told by a mark in the environment, which every descendant inherits.

    Valkey writes its title over it; but it keeps open what it inherits, the lock in the folder.
    """

    def __init__(self, process: Process, mark: str, data: Path) -> None:
        self.process = process
        self.lines: list[str] = []
        self._mark = f"{MARK}={mark}".encode()
        self._lock = data / "up.lock"
        self._errors = b""
        self._readers = [asyncio.create_task(self._listen()), asyncio.create_task(self._fail())]

    @property
    def output(self) -> str:
        """All that it has written to its standard output."""
        return "\n".join(self.lines)

    async def hear(self, text: str) -> str:
        """Waits for the first line with that text."""
        await until(lambda: self._find(text) or self._is_over(), WITHIN_S)
        line = self._find(text)
        assert line is not None, f"no {text!r} in:\n{self.output}\n{self._errors.decode()}"
        return line

    async def ready(self) -> str:
        """The address that it tells once a turn would run."""
        address = re.search(r"http://\S+:\d+", await self.hear("ready in"))
        assert address
        return address[0]

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """Tells it to stop, and sees that it does so in order."""
        self.process.send_signal(number)
        assert await self.end() == (0, "")
        assert self.left() == []

    async def end(self) -> tuple[int, str]:
        """Waits for its end; its exit code and standard error."""
        async with asyncio.timeout(WITHIN_S):
            code = await self.process.wait()
            await asyncio.gather(*self._readers)
        return code, self._errors.decode()

    def interrupt(self) -> None:
        """Ctrl-C: the terminal tells the whole group in the foreground."""
        with suppress(ProcessLookupError):  # has just ended
            os.killpg(self.process.pid, signal.SIGINT)

    def parts(self) -> dict[str, int]:
        """The parts that run, each with its process id."""
        found = {_name_of(pid): pid for pid in self.left()}
        return {name: pid for name, pid in found.items() if name}

    async def part(self, name: str) -> int:
        """Waits for that part to run."""
        pids: list[int] = []
        await until(lambda: pids.extend(self._find_part(name)) or pids or self._is_over(), WITHIN_S)
        assert pids, f"no {name} in:\n{self.output}"
        return pids[0]

    def left(self) -> list[int]:
        """Every process that it started and that still runs, itself not among them."""
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        return [pid for pid in pids if pid != self.process.pid and self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        process = Path(f"/proc/{pid}")
        try:
            if self._mark in (process / "environ").read_bytes().split(b"\0"):
                return True
            return any(file.readlink() == self._lock for file in (process / "fd").iterdir())
        except OSError:  # ended meanwhile
            return False

    def _is_over(self) -> bool:
        return self._readers[0].done()

    def _find_part(self, name: str) -> list[int]:
        return [pid for part, pid in self.parts().items() if part == name]

    def _find(self, text: str) -> str | None:
        return next((line for line in self.lines if text in line), None)

    async def _listen(self) -> None:
        assert self.process.stdout
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip("\n"))

    async def _fail(self) -> None:
        assert self.process.stderr
        self._errors = await self.process.stderr.read()


@asynccontextmanager
async def run_up(data: Path, *flags: str, **environment: str) -> AsyncGenerator[UpProcess]:
    """`turnkeeper up` on a free port; killed with all of its parts if it is still there."""
    mark = uuid.uuid4().hex
    # The small model sometimes never comes to an end.
    limit = {"LLAMA_MAX_TOKENS": "64"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "api.cli", "up", "--data", str(data), "--port", "0", *flags),
        env={**os.environ, MARK: mark, **limit, **environment},
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    up = UpProcess(process, mark, data)
    try:
        yield up
    finally:
        for pid in [*([process.pid] if process.returncode is None else []), *up.left()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await up.end()


def _name_of(pid: int) -> str | None:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return None
    # What is not yet the part: it has just been forked, or waits to become it.
    if "api.cli" in command or "api.local.tether" in command:
        return None
    return next((name for program, name in PROGRAMS.items() if program in command), None)
