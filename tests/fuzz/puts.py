"""Puts into the checkpoint database, counted, and made slow."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any
from unittest.mock import patch

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

MOST_S = 0.04

Put = Callable[..., Awaitable[Any]]


class Puts:
    """What LangGraph writes."""

    def __init__(self) -> None:
        self.count = 0
        self._random: Random | None = None
        self._hurry = asyncio.Event()

    def slow(self, random: Random) -> None:
        """From now on each takes a random time longer."""
        self._random = random
        self._hurry.clear()

    def hurry(self) -> None:
        """From now on none takes longer than it must, those included that are under way."""
        self._random = None
        self._hurry.set()

    def wrap(self, put: Put) -> Put:
        """The put with a delay before it or after it."""

        async def slowly(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            before, after = self._choose_delays()
            await self._delay(before)
            answer = await put(*args, **kwargs)
            await self._delay(after)
            return answer

        return slowly

    def _choose_delays(self) -> tuple[float, float]:
        if self._random is None:
            return 0, 0
        delay = self._random.uniform(0, MOST_S)
        return self._random.choice([(delay, 0), (0, delay)])

    async def _delay(self, seconds: float) -> None:
        if seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._hurry.wait()


@contextmanager
def watch_puts() -> Generator[Puts]:
    """All puts of this process; LangGraph's own saver is what slows down, not ours."""
    puts = Puts()
    saver = AsyncSqliteSaver
    with (
        patch.object(saver, "aput", puts.wrap(saver.aput)),
        patch.object(saver, "aput_writes", puts.wrap(saver.aput_writes)),
    ):
        yield puts
