"""A turn for a client to read, and time in which it does not grow old."""

from collections.abc import AsyncGenerator

from api.client.event import Event
from api.client.patience import Clock
from shared.chunks import (
    Chunk,
    Done,
    Interruption,
    Place,
    Queued,
    Rewind,
    RewindReason,
    Source,
    Text,
)
from shared.summary import Summary
from tests.fake_api import TURN, Reply, events, numbered

CHUNKS: list[Chunk] = [
    Queued(turn_id=TURN, metadata=Place(position=0)),
    Text(turn_id=TURN, content="Good ", metadata=Source("m1")),
    Text(turn_id=TURN, content="mörning", metadata=Source("m1")),
    Done(turn_id=TURN, metadata=Summary(elapsed_s=1.0, queued_s=0.1)),
]
ALL = numbered(*CHUNKS)
WHOLE = Reply(events(*ALL))


def rewind(to_seq: int, reason: RewindReason = "worker_lost") -> Chunk:
    """The turn was broken off, and goes on after this chunk."""
    return Rewind(turn_id=TURN, metadata=Interruption(to_seq, reason))


class FakeTime:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    @property
    def clock(self) -> Clock:
        """What a client is given."""

        async def wait(seconds: float) -> None:
            self.waits.append(seconds)

        return Clock(now=lambda: sum(self.waits), wait=wait)


async def collect(stream: AsyncGenerator[Event]) -> list[str]:
    """What is read, as it was received."""
    return [event.raw async for event in stream]
