"""The one slot: who holds it, the tokens in it, and the prompts kept beside it."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.fake_llama.connection import Connection
from tests.fake_llama.script import Call

KEPT_PROMPTS = 8


class Slot:
    """Serves one call at a time, first come first served."""

    def __init__(self, *, n_ctx: int, n_batch: int, cache_ram: bool) -> None:
        self.n_ctx = n_ctx
        self.n_batch = n_batch
        self.holder: Call | None = None
        self.last: Call | None = None  # the holder, or the one before
        self.n_tasks = 0
        self.tokens: list[str] = []
        self._kept: deque[list[str]] = deque(maxlen=KEPT_PROMPTS if cache_ram else 1)
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def held_by(self, call: Call, connection: Connection) -> AsyncGenerator[None, None]:
        """Raises Closed if the client leaves the queue."""
        await connection.unless_gone(self._lock.acquire)
        self.holder = call
        try:
            connection.check()
            self.last = call
            self.n_tasks += 1
            yield
        finally:
            self.holder = None
            self._lock.release()

    def count_cached(self, prompt: list[str]) -> int:
        """How many tokens of `prompt` need no prefill; without RAM only the slot's own count."""
        self._kept.append(self.tokens)
        return max(count_shared(prompt, kept) for kept in self._kept)


def count_shared(left: list[str], right: list[str]) -> int:
    """The length of the longest common prefix."""
    shortest = min(len(left), len(right))
    return next((i for i in range(shortest) if left[i] != right[i]), shortest)
