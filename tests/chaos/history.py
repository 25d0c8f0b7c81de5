"""What was seen of the turns of a run, by those who posted and followed them."""

from dataclasses import dataclass, field
from typing import Any

from shared.chunks import Chunk

Numbered = list[tuple[int, Chunk]]


@dataclass
class Told:
    """A turn that was accepted. `sent`, `answered`: when its POST was, in seconds.

    `cancel`: the status that the answer to a cancel named; empty without one. `seen`: what one
    follower got who came again and again; `log`: the whole stream, and `record`: GET /turns/{id},
    both read when all was over.
    """

    number: int
    text: str
    thread_id: str
    turn_id: str = ""
    sent: float = 0.0
    answered: float = 0.0
    cancel: str = ""
    seen: Numbered = field(default_factory=list[tuple[int, Chunk]])
    log: Numbered = field(default_factory=list[tuple[int, Chunk]])
    record: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def has_ended(self) -> bool:
        """Its follower knows."""
        return bool(self.seen) and self.seen[-1][1].completed

    @property
    def end(self) -> str:
        """Its last status."""
        return self.record["status"]


@dataclass
class History:
    """`asked`: texts in the order in which the model was first asked them. `most_at_once`: requests
    at the model server. `everlasting`: Redis' keys without a lifetime. `left_open`: rows of the
    database that only a turn under way may have, by table. `kills`: how often a worker was killed.
    `faults`: what was wrong at once when it was seen.
    """

    turns: list[Told] = field(default_factory=list[Told])
    asked: list[str] = field(default_factory=list[str])
    most_at_once: int = 0
    everlasting: set[str] = field(default_factory=set[str])
    left_open: dict[str, int] = field(default_factory=dict[str, int])
    kills: int = 0
    faults: list[str] = field(default_factory=list[str])

    @property
    def ends(self) -> list[str]:
        """How the turns ended that have."""
        return [turn.end for turn in self.turns if turn.record]
