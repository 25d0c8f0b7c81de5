"""Redis as a publisher meets it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from shared import chunks
from shared.chunks import Agent, Chunk, Source, Text, ToolCall, ToolUse
from shared.claims import Claims, Published, State
from shared.errors import Fenced, RedisAway
from shared.record import TurnRecord
from shared.stream import Entry
from tests.turns_made import claimed_turn, entry, queued
from tests.until import until
from worker.publisher import Publisher, open_publisher

TURN = claimed_turn(seq=1)
LOG = [entry(1, queued(TURN))]


class FarSide(Claims):
    """Takes chunks as `claims.publish` does; may be busy, away, forgetful or of another claim."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.sent: dict[int, set[str]] = {}
        self.free = asyncio.Event()
        self.free.set()
        self.outages = 0
        self.lost = 0
        self.fenced = False
        self.knows = True
        self.revived: list[str] = []
        self.cancelling = False
        self.heard_cancels = 0

    async def publish(self, turn: TurnRecord, entry: Entry) -> Published:
        chunk = chunks.decode(entry.body)
        self.sent.setdefault(entry.seq, set()).add(chunk.content)
        await self.free.wait()
        if self.outages:
            self.outages -= 1
            raise RedisAway("Redis cannot be reached.")
        if self.fenced:
            raise Fenced("Claim 1 is not the last one.")
        if not self.knows:
            return Published(None)
        if entry.seq == turn.seq + len(self.chunks) + 1:
            self.chunks.append(chunk)
        if self.lost:
            del self.chunks[-self.lost :]
            self.lost = 0
        return Published(turn.seq + len(self.chunks), self.cancelling)

    async def revive(self, turn: TurnRecord, state: State) -> bool:
        self.revived.append(state)
        self.knows = True
        return True

    def forget(self) -> None:
        """Comes back without all that it knew."""
        self.chunks.clear()
        self.knows = False

    def cancel(self) -> None:
        """What the publisher calls when it hears that the turn is to be undone."""
        self.heard_cancels += 1

    @property
    def contents(self) -> list[str]:
        """What was taken, in order."""
        return [chunk.content for chunk in self.chunks]


def say(content: str, message_id: str = "m", agent: Agent | None = None) -> Text:
    return Text(turn_id="turn", content=content, metadata=Source(message_id, agent or []))


def use(name: str) -> ToolUse:
    metadata = ToolCall(call_id=name, name=name, args={})
    return ToolUse(turn_id="turn", content=name, metadata=metadata)


@asynccontextmanager
async def busy(far: FarSide) -> AsyncGenerator[Publisher]:
    """A publisher whose first chunk, "first", is under way until the far side is set free."""
    far.free.clear()
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
        line.put(say("first"))
        await until(lambda: far.sent)
        yield line
        far.free.set()
