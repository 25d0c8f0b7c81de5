"""What followers hold of a turn that was broken off, set right by what the database holds.

- W1  A chunk stands if what it tells of is in the database: the message, the call, the result.
- W2  A `rewind` says which number was the last before the first chunk that does not stand. What
      comes after it is told again as far as it stands, and with it what was never told.
- W3  Each worker that was lost is told of once.
- W4  Where chunks may be lost that a follower has, the `rewind` is told under each of their numbers
      and once more, so that whoever has read some or all of them hears it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from shared import chunks
from shared.chunks import (
    Chunk,
    Interruption,
    Queued,
    Rewind,
    RewindReason,
    Text,
    ToolResult,
    ToolUse,
    Usage,
)
from shared.stream import Entry
from worker.standing import Standing
from worker.translate import Translator

Key = tuple[str, str]
"""What a chunk tells of: its type, and the id of a message or of a call."""

Held = list[tuple[int, Chunk]]
"""Numbers and chunks."""


def set_right(
    entries: Sequence[Entry],
    standing: Standing,
    translator: Translator,
    reason: RewindReason,
    attempt: int,
    lost: int = 0,
) -> list[Chunk]:
    """The chunks that set right what followers hold; none if they hold what stands, know that the
    turn waits, and of each worker that died with it.

    `lost`: how many chunks after `entries` may have been told as well. `translator` goes on from
    there: it knows what stands, and tells none of it again.
    """
    held = hold(entries)
    stands = _contents(_tell(translator.begin_anew(), standing))
    kept = held[: _count_standing(held, stands)]
    translator.recall(chunk for _, chunk in kept)
    again = list(_tell(translator, standing))
    void = held[len(kept) :]
    waits = not kept or isinstance(kept[-1][1], Queued)
    if not (void or again or lost) and waits and count_lost(entries) == attempt - 1:
        return []
    last = kept[-1][0] if kept else 0
    to_seq = void[0][0] - 1 if void else last if lost else len(entries)
    rewind = Rewind(turn_id=translator.turn_id, metadata=Interruption(to_seq, reason))
    return [*[rewind] * (lost + 1), *again]


def _tell(translator: Translator, standing: Standing) -> Iterator[Chunk]:
    translator.learn_agents(standing.agents)
    for namespace, message in standing.said:
        yield from translator.retell(namespace, message)


def hold(entries: Iterable[Entry]) -> Held:
    """What a follower holds after these."""
    held: Held = []
    for entry in entries:
        chunk = chunks.decode(entry.body)
        if isinstance(chunk, Rewind):
            held = [(seq, kept) for seq, kept in held if seq <= chunk.metadata.to_seq]
        else:
            held.append((entry.seq, chunk))
    return held


def find_reason(log: Iterable[Entry], attempt: int) -> RewindReason:
    """Why this attempt goes on with a turn: a worker died with it of which nobody was told, or it
    was stopped.
    """
    return "worker_lost" if count_lost(log) < attempt - 1 else "worker_stopped"


def count_lost(log: Iterable[Entry]) -> int:
    """Of how many lost workers the log tells; what it says several times running counts once."""
    bodies = (body for body, _ in groupby(entry.body for entry in log))
    return sum(_tells_of_loss(body) for body in bodies)


def _tells_of_loss(body: bytes) -> bool:
    try:
        chunk = chunks.decode(body)
    except msgspec.MsgspecError:  # of another version
        return False
    return isinstance(chunk, Rewind) and chunk.metadata.reason == "worker_lost"


def _count_standing(held: Held, stands: Mapping[Key, str]) -> int:
    """How many stand before the first that does not; of a message only the whole text does."""
    told = _contents(chunk for _, chunk in held)
    for place, (_, chunk) in enumerate(held):
        key = _key(chunk)
        if key and (key not in stands or (key[0] == "text" and told[key] != stands[key])):
            return place
    return len(held)


def _contents(told: Iterable[Chunk]) -> dict[Key, str]:
    contents: dict[Key, str] = {}
    for chunk in told:
        if key := _key(chunk):
            contents[key] = contents.get(key, "") + chunk.content
    return contents


def _key(chunk: Chunk) -> Key | None:
    """None for what tells of the turn itself, and stands."""
    match chunk:
        case Text() | Usage():
            return chunks.type_of(chunk), chunk.metadata.message_id
        case ToolUse() | ToolResult():
            return chunks.type_of(chunk), chunk.metadata.call_id
        case _:
            return None
