"""An agent's tools that can be held, and let go all at once."""

# LangChain's own annotations are unknown to a strict reader.
# pyright: reportUnknownMemberType=false

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

from langchain_core.tools import BaseTool, StructuredTool

from worker.graph import Model


class Tools:
    """`held`: what each tool that has begun and not ended was given; `n_begun`: those before, too.

    `model`: what the agent asks, set when it is built.
    """

    model: Model

    def __init__(self) -> None:
        self.held: list[str] = []
        self.n_begun = 0
        self.free = asyncio.Event()
        self._free_threads = threading.Event()

    def let_go(self) -> None:
        """Frees all that is held, and all that would be."""
        self.free.set()
        self._free_threads.set()

    def as_tools(self) -> list[BaseTool]:
        """As an agent takes them; their descriptions are the model's."""
        tools = (self.note, self.rest, self.persist, self.wait, self.stay, self.fail)
        return [
            *(StructuredTool.from_function(coroutine=tool) for tool in tools),
            StructuredTool.from_function(self.block),
        ]

    @contextmanager
    def _holding(self, what: str) -> Generator[None]:
        self.held.append(what)
        self.n_begun += 1
        try:
            yield
        finally:
            self.held.remove(what)

    async def note(self, what: str) -> str:
        """Answers at once."""
        return what

    async def rest(self, what: str) -> str:
        """Answers after so many milliseconds."""
        with self._holding(what):
            await asyncio.sleep(int(what) / 1000)
        return what

    async def persist(self, what: str) -> str:
        """Answers after so many milliseconds, cancelled or not."""
        resting = asyncio.create_task(self.rest(what))
        while not resting.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({resting})
        return what

    async def wait(self, what: str) -> str:
        """Answers when all is let go."""
        with self._holding(what):
            await self.free.wait()
        return what

    async def stay(self, what: str) -> str:
        """Will not be cancelled, and asks the model when all is let go."""
        with self._holding(what):
            while not self.free.is_set():
                with suppress(asyncio.CancelledError):
                    await self.free.wait()
            await self.model.ainvoke("Where were we?")
        return what

    async def fail(self, what: str) -> str:
        """Raises when all is let go."""
        await self.wait(what)
        raise RuntimeError(what)

    def block(self, what: str) -> str:
        """Answers when all is let go, in a thread, which cannot be cancelled."""
        with self._holding(what):
            self._free_threads.wait()
        return what
