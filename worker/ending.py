"""A turn with its end: what the ledger keeps, the outbox carries and Redis is told."""

import msgspec
from msgspec import Struct

from shared import characters, chunks
from shared.chunks import Done, Terminal
from shared.record import Failure, TurnRecord
from shared.stream import Entry


class Ending(Struct, frozen=True, kw_only=True):
    """`failure`: why, if the turn ended in an error. `log`: all chunks before the last one, for a
    Redis that has not heard of them, or loses them again; empty when it is not known any more.
    `said`: when each message of the turn's own agent was whole (shared/threads.py: times), by its
    id; results of tools by that of their call.
    """

    turn: TurnRecord
    chunk: Terminal
    failure: Failure | None = None
    log: list[Entry] = []
    said: dict[str, int] = {}

    @property
    def outcome(self) -> str:
        """The turn's last status."""
        return chunks.type_of(self.chunk)

    @property
    def finished_at(self) -> int:
        """When it ended: milliseconds since the epoch, by Redis' clock."""
        return self.turn.time_after(self.chunk.metadata.elapsed_s)

    @property
    def rolled_back_messages(self) -> int | None:
        """How many messages the restore took out; None: there was none, or nobody could tell."""
        return None if isinstance(self.chunk, Done) else self.chunk.metadata.rolled_back_messages


_endings = msgspec.json.Decoder(Ending)


def encode_ending(ending: Ending) -> str:
    """The ending as JSON."""
    return characters.encode(ending).decode()


def decode_ending(text: str) -> Ending:
    """The ending of its JSON."""
    return _endings.decode(text)
