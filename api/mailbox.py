"""What a follower of a turn has yet to take."""

import asyncio
from collections import deque
from enum import Enum, auto

from shared.stream import Entry

LIMIT = 1000


class Signal(Enum):
    """What a follower may be told instead of a chunk."""

    RESYNC = auto()
    """Chunks may be missing here: read the log after the last one taken."""
    CLOSED = auto()
    """Nothing more will come, whether or not the turn has ended."""


class Mailbox:
    """Takes chunks without ever waiting; when it overflows, the log is read instead."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
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

    async def take(self) -> Entry | Signal:
        """The next chunk or signal, as soon as there is one."""
        while True:
            if self._closed:
                return Signal.CLOSED
            if self._stale:
                self._stale = False
                return Signal.RESYNC
            if self._entries:
                return self._entries.popleft()
            self._news.clear()
            await self._news.wait()
