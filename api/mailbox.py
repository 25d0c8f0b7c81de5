"""What a follower of a turn has yet to take, and how long it waits for it."""

import asyncio
from collections import deque
from enum import Enum, auto
from typing import NamedTuple

from shared.heartbeat import EXPIRE_S
from shared.stream import Entry

LIMIT = 1000


class Pace(NamedTuple):
    """How a follower that hears nothing looks for itself, in seconds."""

    look_s: float = 5.0
    """From the last chunk to a look at the log: something may have been lost on its way."""
    again_s: float = 0.5
    """To the next look at a log that was not there or could not be read."""
    lost_s: float = EXPIRE_S
    """From then on a log that stays gone is given up. A worker asks every RENEW_S whether Redis
    knows its turn, and writes what is missing; one that has not done so by now is not there.
    """


PACE = Pace()


class Signal(Enum):
    """What a follower may be told instead of a chunk."""

    RESYNC = auto()
    """Chunks may be missing here: read the log after the last one taken."""
    CLOSED = auto()
    """Nothing more will come, whether or not the turn has ended."""


class Mailbox:
    """Takes chunks without ever waiting; when it overflows, the log is read instead.

    For a task of a running loop.
    """

    def __init__(self, limit: int = LIMIT, pace: Pace = PACE) -> None:
        self._limit = limit
        self._pace = pace
        self._loop = asyncio.get_running_loop()
        self._look_at = self._loop.time() + pace.look_s
        self._gone_since: float | None = None
        self._entries: deque[Entry] = deque()
        self._stale = False
        self._closed = False
        self._news = asyncio.Event()

    def put(self, entry: Entry) -> None:
        """Adds a chunk, unless the log, which has it already, is to be read anyway."""
        if self._stale:
            return
        if len(self._entries) >= self._limit:
            self.resync()
        else:
            self._entries.append(entry)
            self._news.set()

    def resync(self) -> None:
        """Has the log read next."""
        self._entries.clear()
        self._stale = True
        self._news.set()

    def close(self) -> None:
        """Lets the follower go, at once."""
        self._closed = True
        self._news.set()

    def found(self) -> None:
        """The log is there, up to the last chunk taken."""
        self._gone_since = None
        self._look_at = self._loop.time() + self._pace.look_s

    def missed(self) -> None:
        """The log is not there: lets the follower go when that stays so."""
        now = self._loop.time()
        self._gone_since = now if self._gone_since is None else self._gone_since
        self._look_at = now + self._pace.again_s
        if now - self._gone_since >= self._pace.lost_s:
            self.close()

    def not_seen(self, *, soon: bool) -> None:
        """Nobody knows whether the log is there; `soon`: nothing else will have it read."""
        self._gone_since = None
        self._look_at = self._loop.time() + (self._pace.again_s if soon else self._pace.look_s)

    async def take(self) -> Entry | Signal:
        """The next chunk or signal, as soon as there is one, or it is time to look."""
        while True:
            if self._closed:
                return Signal.CLOSED
            if self._stale:
                self._stale = False
                return Signal.RESYNC
            if self._entries:
                return self._entries.popleft()
            self._news.clear()
            await self._wait()

    async def _wait(self) -> None:
        # Not asyncio.timeout, for the reason that is given in shared/connections.py.
        look = self._loop.call_at(self._look_at, self.resync)
        try:
            await self._news.wait()
        finally:
            look.cancel()
