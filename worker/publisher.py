"""A turn's chunks on their way to Redis: in order, numbered, none lost while Redis is away.

Text goes out at once when the line is free. What comes while a chunk is under way, or within
FRAME_S of the last one, is collected into one: a slow model's token is never held back, and a fast
model costs a few chunks per frame of a screen.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from shared.chunks import Chunk, Text
from shared.claims import Claims
from shared.errors import Fenced
from shared.record import TurnRecord
from worker.gate import TurnClosed
from worker.insist import insist

FRAME_S = 0.012


class Publisher:
    """Use `open_publisher`."""

    sending: asyncio.Task[None]
    """Ends before the turn only when it fails."""

    def __init__(self, claims: Claims, turn: TurnRecord, cancel: Callable[[], None]) -> None:
        self._claims = claims
        self._turn = turn
        self._cancel = cancel
        self._chunks: list[Chunk] = []
        self._sent = 0
        self._tried = 0
        self._fenced: Fenced | None = None
        self._more = asyncio.Event()
        self._draining = asyncio.Event()

    def put(self, chunk: Chunk) -> None:
        """Takes a chunk and never waits; raises Fenced when the turn belongs to another claim.

        Raises TurnClosed when the turn is over.
        """
        if self._fenced:
            raise self._fenced
        if self._draining.is_set():
            raise TurnClosed("The turn is over.")
        last = self._chunks[-1] if len(self._chunks) > self._tried else None
        if isinstance(chunk, Text) and isinstance(last, Text) and last.metadata == chunk.metadata:
            self._chunks[-1] = replace(last, content=last.content + chunk.content)
        else:
            self._chunks.append(chunk)
        self._more.set()

    async def send(self) -> None:
        """Sends what was put, until all is sent and `close` was called; raises Fenced."""
        try:
            while self._sent < len(self._chunks) or not self._draining.is_set():
                self._more.clear()
                while self._sent < len(self._chunks):
                    await self._send_next()
                    await self._wait_for_frame()
                if not self._draining.is_set():
                    await self._more.wait()
        except Fenced as error:
            self._fenced = error
            raise

    async def _send_next(self) -> None:
        chunk, before = self._chunks[self._sent], self._turn.seq
        seq = before + self._sent + 1
        # Redis may have it although it did not answer: from here on the chunk is what it is.
        self._tried = max(self._tried, self._sent + 1)
        last, cancelling = await insist(lambda: self._claims.publish(self._turn, seq, chunk))
        if cancelling:
            self._cancel()
        # Redis may have come back without its last second: what it lacks is sent again.
        self._sent = last - before

    async def _wait_for_frame(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FRAME_S):
                await self._draining.wait()

    def close(self) -> None:
        """Takes nothing more; what was put is still sent."""
        self._draining.set()
        self._more.set()


@asynccontextmanager
async def open_publisher(
    claims: Claims, turn: TurnRecord, cancel: Callable[[], None]
) -> AsyncGenerator[Publisher]:
    """A publisher that has sent everything when the block ends, also by an error; raises Fenced.

    `cancel` is called when Redis says that a person wants the turn undone. Cancelled itself, the
    publisher ends at once.
    """
    publisher = Publisher(claims, turn, cancel)
    publisher.sending = sending = asyncio.create_task(publisher.send())
    try:
        yield publisher
    except asyncio.CancelledError:
        sending.cancel()
        raise
    finally:
        publisher.close()
        await _end(sending)


async def _end(sending: asyncio.Task[None]) -> None:
    try:
        await asyncio.wait({sending})
    finally:
        sending.cancel()
    if not sending.cancelled():
        sending.result()
