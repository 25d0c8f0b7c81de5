"""The processes of a service, each of which may be ended at any time and is then started again."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

from api.listener import bind
from tests.chaos import crew
from tests.valkey import answers, valkey_command, valkey_url
from tests.zygote import KILLED, Forked, ended, fork_api, fork_program, fork_worker

STOP_S = 10
"""An orderly stop takes no longer."""

N_APIS = 2
MOST_AWAY_S = 0.3
SHOWN = 2000
"""Characters."""


class Part:
    """A process that is always there again; `fork` starts it."""

    def __init__(self, name: str, fork: Callable[[], Awaitable[Forked]]) -> None:
        self.name = name
        self._fork = fork
        self._process: Forked

    async def start(self) -> Forked:
        """The first one, or the next."""
        self._process = await self._fork()
        return self._process

    async def strike(self, number: signal.Signals, random: Random) -> None:
        """Ends it by this signal and starts it again a little later; asserts that it obeys."""
        process = self._process
        assert process.exit_code is None, f"{self.name} has ended: {process.log[-SHOWN:]}"
        began = time.monotonic()
        process.send(number)
        exit_code, took = await process.wait(), time.monotonic() - began
        assert exit_code == (KILLED if number == signal.SIGKILL else 0), f"{self.name}: {exit_code}"
        assert took < STOP_S, f"{self.name} took {took:.1f} s to stop"
        await asyncio.sleep(random.uniform(0, MOST_AWAY_S))
        await self.start()

    async def end(self) -> None:
        """In order."""
        async with ended(self._process):
            pass


class Parts:
    """`urls`: of the APIs."""

    def __init__(self, folder: Path, llama_url: str) -> None:
        self.folder = folder
        self.urls: list[str] = []
        self.redis_url = valkey_url(folder)
        self.redis = Part("Redis", self._fork_redis)
        self.database = folder / "checkpoints.sqlite"
        self._shared = {
            "REDIS_URL": self.redis_url,
            "AGENTS": crew.AGENTS,
            "LOG_LEVEL": "WARNING",
        }
        own = {"LLAMA_BASE_URL": llama_url, "CHECKPOINT_DB": str(self.database)}
        environment = {**self._shared, **own, crew.FOLDER: str(folder)}
        self.worker = Part("worker", lambda: fork_worker(folder / "worker.log", environment))
        self.apis: list[Part] = []

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """All of them, until the end."""
        async with AsyncExitStack() as stack:
            for number in range(N_APIS):
                self._add_api(stack, number)
            for part in (self.redis, self.worker, *self.apis):
                await part.start()
                stack.push_async_callback(part.end)
            yield

    def logs(self) -> list[str]:
        """The last that each process has said."""
        return [f"{log.name}:\n{log.read_text()[-SHOWN:]}" for log in self.folder.glob("*.log")]

    def _add_api(self, stack: AsyncExitStack, number: int) -> None:
        # It stays open: who asks while there is no API waits for the next.
        listener = stack.enter_context(bind("127.0.0.1", 0))
        log, environment = self.folder / f"api-{number}.log", self._api_environment()
        self.apis.append(Part("API", lambda: fork_api(log, environment, listener)))
        self.urls.append(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def _api_environment(self) -> Mapping[str, str]:
        return {**self._shared, "DEFAULT_AGENT": crew.NAME, "MAX_QUEUE": "1000"}

    async def _fork_redis(self) -> Forked:
        # Each write is on the disk before it is answered: what dies with the server was not said.
        command = [*valkey_command(self.folder), "--appendfsync", "always"]
        process = await fork_program(self.folder / "valkey.log", command)
        while not answers(self.folder):
            assert process.exit_code is None, process.log[-SHOWN:]
            await asyncio.sleep(0.01)
        return process
