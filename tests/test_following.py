"""What a follower holds, after rewinds too."""

import pytest

from shared.chunks import Chunk
from tests.client_made import rewind
from tests.following import standing
from tests.terminal import done, queued, text

A, B, C = text("a"), text("b"), text("c")


@pytest.mark.parametrize(
    ("seen", "held"),
    [
        ([], []),
        ([queued(0), A, done()], [1, 2, 3]),
        ([queued(0), A, B, rewind(1), A, done()], [1, 5, 6]),
        ([queued(0), A, rewind(2), B], [1, 2, 4]),
        ([queued(0), rewind(0), A], [3]),
        ([queued(0), A, rewind(1), B, rewind(1), C], [1, 6]),
        ([queued(0), A, rewind(1), B, C, rewind(4)], [1, 4]),
        ([queued(0), A, rewind(1), B, rewind(0), C], [6]),
    ],
    ids=[
        "nothing",
        "no rewind",
        "one rewind",
        "nothing void",
        "all void",
        "twice to the same place",
        "the second after the first",
        "the second before the first",
    ],
)
def test_what_stands(seen: list[Chunk], held: list[int]):
    numbered = list(enumerate(seen, 1))
    assert standing(numbered) == [(seq, seen[seq - 1]) for seq in held]


def test_a_follower_who_came_later_holds_what_he_has_seen_of_it():
    assert standing([(8, A), (9, B), (10, rewind(8)), (11, C)]) == [(8, A), (11, C)]
    assert standing([(8, A), (9, rewind(2)), (10, C)]) == [(10, C)]
