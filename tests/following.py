"""What a follower of a turn holds in the end."""

from collections.abc import Iterable

from shared.chunks import Chunk, Rewind


def standing(seen: Iterable[tuple[int, Chunk]]) -> list[tuple[int, Chunk]]:
    """What is not void of the chunks that were seen, in their order; rewinds are not kept."""
    held: list[tuple[int, Chunk]] = []
    for seq, chunk in seen:
        if isinstance(chunk, Rewind):
            to_seq = chunk.metadata.to_seq
            held = [(known, it) for known, it in held if known <= to_seq]
        else:
            held.append((seq, chunk))
    return held
