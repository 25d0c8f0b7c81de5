"""A Valkey that is there and does not answer: its kernel takes connections, it reads nothing."""

import os
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.redis_seen import looking
from tests.valkey import run_valkey


class Stoppable:
    """A server of one's own."""

    def __init__(self, url: str) -> None:
        self.url = url
        with looking(url) as seen:
            self._pid: int = seen.info("server")["process_id"]

    @contextmanager
    def stopped(self) -> Generator[None]:
        """It says nothing inside of the block, and then goes on as if nothing had been."""
        os.kill(self._pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._pid, signal.SIGCONT)


@asynccontextmanager
async def run_stoppable(folder: Path) -> AsyncGenerator[Stoppable]:
    """Starts it in `folder`."""
    async with run_valkey(folder) as url:
        yield Stoppable(url)
