"""A turn's chunks on their way to Redis: in order, numbered, none lost while Redis is away.

Text goes out at once when the line is free. What comes while a chunk is under way, or within
FRAME_S of the last one, is collected into one: a slow model's token is never held back, and a fast
model costs a few chunks per frame of a screen.

All of the turn's chunks are kept until it is over: a Redis that comes back without them, or without
the turn, is given them again.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from shared import chunks
from shared.chunks import Chunk, Text
from shared.claims import Claims, State, Told
from shared.errors import Fenced
from shared.record import TurnRecord
from shared.stream import Entry
from worker.gate import TurnClosed
from worker.insist import insist

FRAME_S = 0.012

Reserve = Callable[[int], Awaitable[int]]


class Publisher:
    """Use `open_publisher`. `log`: the chunks that Redis holds; `unsent`: those that come next."""

    sending: asyncio.Task[None]
    """Ends before the turn only when it fails."""

    def __init__(
        self,
        claims: Claims,
        turn: TurnRecord,
        log: Sequence[Entry],
        cancel: Callable[[], None],
        unsent: Sequence[Entry] = (),
    ) -> None:
        self._claims = claims
        self._turn = turn
        self._cancel = cancel
        # From the first attempt to send it a chunk is what it is: Redis may have it although it did
        # not answer.
        behind = [entry._replace(seq=seq) for seq, entry in enumerate(unsent, len(log) + 1)]
        self._numbered = [*log, *behind]
        self._sent = len(log)
        self.state: State = "running"
        """As what Redis is to know of the turn when it has forgotten it."""
        self._bound: float = math.inf
        self._reserve: Reserve | None = None
        self._chunks: list[Chunk] = []
        self._probing = False
        self._fenced: Fenced | None = None
        self._more = asyncio.Event()
        self._draining = asyncio.Event()

    def put(self, chunk: Chunk) -> None:
        """Takes a chunk and never waits; raises TurnClosed when the turn is over, and Fenced."""
        if self._fenced:
            raise self._fenced
        if self._draining.is_set():
            raise TurnClosed("The turn is over.")
        last = self._chunks[-1] if self._chunks else None
        if isinstance(chunk, Text) and isinstance(last, Text) and last.metadata == chunk.metadata:
            self._chunks[-1] = replace(last, content=last.content + chunk.content)
        else:
            self._chunks.append(chunk)
        self._more.set()

    def limit(self, bound: int, reserve: Reserve) -> None:
        """Has `reserve` asked before a number above `bound` is told; it answers a higher one."""
        self._bound, self._reserve = bound, reserve

    def probe(self) -> None:
        """Asks Redis whether it still has what it was given, and whether to go on."""
        self._probing = True
        self._more.set()

    @property
    def entries(self) -> list[Entry]:
        """All of the turn's chunks, those that were not sent yet too."""
        first = len(self._numbered) + 1
        waiting = [_number(seq, chunk) for seq, chunk in enumerate(self._chunks, first)]
        return [*self._numbered, *waiting]

    async def send(self) -> None:
        """Sends what was put, until all is sent and `close` was called; raises Fenced."""
        try:
            while True:
                self._more.clear()
                while entry := self._next():
                    await self._send(entry)
                    await self._wait_for_frame()
                if self._draining.is_set():
                    return
                await self._more.wait()
        except Fenced as error:
            self._fenced = error
            raise

    async def conclude(self, say: Callable[[int], Awaitable[Told]]) -> Told:
        """Says the turn's last word under the number that it is given, behind all that was put.

        Raises Fenced.
        """
        while True:
            told = await insist(lambda: say(len(self._numbered) + 1))
            if told.state == "forgotten":
                await self._revive()
            elif told.state == "behind":
                self._sent = told.last
            else:
                return told
            while entry := self._next():
                await self._send(entry)

    def close(self) -> None:
        """Takes nothing more; what was put is still sent."""
        self._draining.set()
        self._more.set()

    def _next(self) -> Entry | None:
        if self._sent == len(self._numbered) and self._chunks:
            self._numbered.append(_number(self._sent + 1, self._chunks.pop(0)))
        if self._sent < len(self._numbered):
            return self._numbered[self._sent]
        return self._numbered[-1] if self._probing and self._numbered else None

    async def _send(self, entry: Entry) -> None:
        self._probing = False
        if self._reserve and entry.seq > self._bound:
            self._bound = await self._reserve(entry.seq)
        last, cancelling = await insist(lambda: self._claims.publish(self._turn, entry))
        if cancelling:
            self._cancel()
        if last is None:
            await self._revive()
        else:
            self._sent = last

    async def _revive(self) -> None:
        await insist(lambda: self._claims.revive(self._turn, self.state))
        # Of a record that was there and only older, more is left: the next answer says how much.
        self._sent = min(1, len(self._numbered))

    async def _wait_for_frame(self) -> None:
        # Sent again, or with others behind it, to which alone something can be joined.
        if self._sent < len(self._numbered) or len(self._chunks) > 1:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(FRAME_S):
                await self._draining.wait()


def _number(seq: int, chunk: Chunk) -> Entry:
    return Entry(seq, chunks.type_of(chunk), chunks.encode(chunk))


@asynccontextmanager
async def open_publisher(
    claims: Claims,
    turn: TurnRecord,
    log: Sequence[Entry],
    cancel: Callable[[], None],
    unsent: Sequence[Entry] = (),
) -> AsyncGenerator[Publisher]:
    """A publisher that has sent everything when the block ends, also by an error; raises Fenced.

    `cancel` is called when Redis says that a person wants the turn undone. Cancelled itself, the
    publisher ends at once.
    """
    publisher = Publisher(claims, turn, log, cancel, unsent)
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
