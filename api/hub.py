"""Everybody who follows a turn in this process, fed from one connection to Redis.

Redis acknowledges a subscription; what was said before that stands in the log. So whoever follows
reads the log after each acknowledgement (the first, and those after a lost connection) and then
takes what is heard, without what it has sent already, and reads the log again where a number is
missing, and after a silence.

A log that is gone, or does not reach to where its follower is, may be written again by the worker:
only when that does not come is the follower let go.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager
from typing import Self

import anyio

from api.channels import Channels
from api.deadline import redis_deadline
from api.mailbox import PACE, Mailbox, Pace, Signal
from shared import stream
from shared.errors import RedisAway
from shared.redis import Redis
from shared.stream import Entry


class Hub:
    """Entered with `async with`. `farewell`: set when the process is about to stop; ends all."""

    def __init__(self, redis: Redis, pace: Pace = PACE) -> None:
        self.farewell = anyio.Event()
        self._redis = redis
        self._pace = pace
        self._mailboxes: dict[str, set[Mailbox]] = {}
        self._channels = Channels(redis, self)
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        group = await self._group.__aenter__()
        self._tasks = [
            group.create_task(self._channels.run(), name="channels of turns"),
            group.create_task(self._await_farewell(), name="farewell to followers"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close_all()
        for task in self._tasks:
            task.cancel()
        # Told of no error, the group leaves the one that ended the block as it is.
        await self._group.__aexit__(None, None, None)

    async def follow(self, turn_id: str, after: int) -> AsyncGenerator[Entry]:
        """The chunks with a number above `after`, each once and in order, up to the terminal one.

        Ends earlier when the process stops or when the turn's log stays gone.
        """
        with self._mailbox(turn_id) as mailbox:
            while (item := await mailbox.take()) is not Signal.CLOSED:
                async with aclosing(self._next(turn_id, after, item, mailbox)) as entries:
                    async for entry in entries:
                        after = entry.seq
                        mailbox.found()
                        yield entry
                        if entry.terminal:
                            return

    def wanted(self) -> set[str]:
        """The turns that are followed."""
        return set(self._mailboxes)

    def acknowledge(self, turn_id: str) -> None:
        """Has the followers of a turn read what they may have missed."""
        for mailbox in self._mailboxes.get(turn_id, ()):
            mailbox.resync()

    def tell(self, turn_id: str, message: bytes) -> None:
        """Hands a chunk to the followers of its turn."""
        try:
            entry = stream.parse_message(message)
        except ValueError:  # said by somebody else; the log knows better
            self.acknowledge(turn_id)
            return
        for mailbox in self._mailboxes.get(turn_id, ()):
            mailbox.put(entry)

    async def _next(
        self, turn_id: str, after: int, item: Entry | Signal, mailbox: Mailbox
    ) -> AsyncGenerator[Entry]:
        if isinstance(item, Signal):
            async with aclosing(self._read_log(turn_id, after, mailbox)) as entries:
                async for entry in entries:
                    yield entry
        elif item.seq == after + 1:
            yield item
        elif item.seq > after:
            mailbox.resync()

    async def _read_log(self, turn_id: str, after: int, mailbox: Mailbox) -> AsyncGenerator[Entry]:
        """Reads the last chunk taken too: without it, what is there is not what was followed."""
        log = stream.read(self._redis, turn_id, max(after - 1, 0))
        found = False
        try:
            async with aclosing(log):
                while entry := await _next_entry(log):
                    found = True
                    if entry.seq > after:
                        yield entry
        except RedisAway:
            mailbox.not_seen(soon=self._channels.hears(turn_id))
            return
        if found:
            mailbox.found()
        else:
            mailbox.missed()

    @contextmanager
    def _mailbox(self, turn_id: str) -> Generator[Mailbox]:
        mailbox = Mailbox(pace=self._pace)
        self._mailboxes.setdefault(turn_id, set()).add(mailbox)
        self._channels.review()
        if self._channels.hears(turn_id):
            mailbox.resync()
        if self.farewell.is_set():
            mailbox.close()
        try:
            yield mailbox
        finally:
            self._forget(turn_id, mailbox)

    def _forget(self, turn_id: str, mailbox: Mailbox) -> None:
        self._mailboxes[turn_id].discard(mailbox)
        if not self._mailboxes[turn_id]:
            del self._mailboxes[turn_id]
            self._channels.review()

    async def _await_farewell(self) -> None:
        await self.farewell.wait()
        self._close_all()

    def _close_all(self) -> None:
        for mailboxes in self._mailboxes.values():
            for mailbox in mailboxes:
                mailbox.close()


async def _next_entry(log: AsyncGenerator[Entry]) -> Entry | None:
    async with redis_deadline():
        return await anext(log, None)
