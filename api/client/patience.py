"""How long a client waits before it asks again, and when it stops asking."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

FIRST_S = 0.2
LONGEST_S = 5.0
LIMIT_S = 60.0


class Clock(NamedTuple):
    """Time as the system tells it, unless a test does."""

    now: Callable[[], float] = time.monotonic
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep


class Patience:
    """Waits twice as long each time, up to LONGEST_S, and for LIMIT_S without a sign of life."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pace = FIRST_S
        self._delay = FIRST_S
        self._end: float | None = None

    @property
    def tried(self) -> bool:
        """A wait has begun since the last sign of life."""
        return self._end is not None

    def set_pace(self, milliseconds: int) -> None:
        """Begins with the server's own `retry`, within reason."""
        self._pace = min(max(milliseconds / 1000, FIRST_S), LIMIT_S / 2)

    def see_life(self) -> None:
        """The server has sent something: the limit counts anew."""
        self._end = None

    def see_progress(self) -> None:
        """The server has sent something new: the waits are short again."""
        self._delay = self._pace

    async def wait(self) -> bool:
        """Waits, or answers False when that would pass the limit."""
        now = self._clock.now()
        if self._end is None:
            self._end = now + LIMIT_S
        if now + self._delay > self._end:
            return False
        await self._clock.wait(self._delay)
        self._delay = min(2 * self._delay, max(LONGEST_S, self._pace))
        return True
