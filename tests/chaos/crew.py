"""The workshop's agent for workers that die: its tools write down each of their executions."""

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.traceless import workshop
from tests.traceless.tools import Tools
from worker.agents.registry import Deps
from worker.graph import Graph

NAME = "crew"
AGENTS = f"{NAME}=tests.chaos.crew:build"
FOLDER = "CREW_FOLDER"
"""The variable that says where the tools write and look."""


class Crew(Tools):
    """Both sides of it: in the worker the tools, outside what they have done and may do."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._journal = folder / "journal"
        self._free = folder / "free"

    @property
    def begun(self) -> list[str]:
        """What each execution of a tool was given, in their order."""
        return self._journal.read_text().splitlines() if self._journal.exists() else []

    def forget(self) -> None:
        """None of them counts any more."""
        self._journal.unlink(missing_ok=True)

    def hold(self) -> None:
        """From now on each that waits is held."""
        self._free.unlink(missing_ok=True)

    def let_go(self) -> None:
        """Frees all that is held, and all that would be."""
        self._free.touch()

    async def note(self, what: str) -> str:
        """Answers at once."""
        with self._holding(what):
            return what

    async def wait(self, what: str) -> str:
        """Answers when all is let go."""
        with self._holding(what):
            while not self._free.exists():
                await asyncio.sleep(0.002)
        return what

    @contextmanager
    def _holding(self, what: str) -> Generator[None]:
        with self._journal.open("a") as journal:
            journal.write(f"{what}\n")
        yield


def build(deps: Deps) -> Graph:
    """The agent as AGENTS finds it."""
    return workshop.build(Crew(Path(os.environ[FOLDER])), deps)
