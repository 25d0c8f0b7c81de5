"""What a follower of a turn holds in the end, made comparable."""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shared.chunks import Chunk, Done, Rewind, Text, ToolResult, ToolUse, Usage, type_of
from shared.usage import CallUsage, add_up
from tests.following import standing

Agent = tuple[str, ...]


class Held(NamedTuple):
    """`texts`: who said what, a message each. `calls`, `results`: of tools. All sorted, as what
    belongs to one step comes in any order. `end`: type of the last chunk.
    """

    texts: list[tuple[Agent, str]]
    calls: list[tuple[Agent, str, str]]
    results: list[tuple[Agent, str, str]]
    usage: list[CallUsage]
    end: str

    @property
    def answer(self) -> "Held":
        """Without the figures, which differ from turn to turn."""
        return self._replace(usage=[])


def hold_all(seen: Sequence[Chunk]) -> Held:
    """What is left of a whole stream for who honours each `rewind`."""
    return hold(enumerate(seen, 1))


def hold(seen: Iterable[tuple[int, Chunk]]) -> Held:
    """The same of numbered chunks."""
    chunks = [chunk for _, chunk in standing(seen)]
    return Held(
        texts=_texts(chunks),
        calls=sorted(
            (tuple(it.metadata.agent), it.metadata.name, json.dumps(it.metadata.args))
            for it in chunks
            if isinstance(it, ToolUse)
        ),
        results=sorted(
            (tuple(it.metadata.agent), it.metadata.name, it.content)
            for it in chunks
            if isinstance(it, ToolResult)
        ),
        usage=[it.metadata for it in chunks if isinstance(it, Usage)],
        end=type_of(chunks[-1]),
    )


def count_void(seen: Sequence[tuple[int, Chunk]]) -> int:
    """How many chunks a rewind has taken back."""
    rewinds = sum(isinstance(chunk, Rewind) for _, chunk in seen)
    return len(seen) - rewinds - len(standing(seen))


def _texts(chunks: list[Chunk]) -> list[tuple[Agent, str]]:
    said: dict[tuple[Agent, str], str] = {}
    for chunk in chunks:
        if isinstance(chunk, Text):
            key = tuple(chunk.metadata.agent), chunk.metadata.message_id
            said[key] = said.get(key, "") + chunk.content
    return sorted((agent, text) for (agent, _), text in said.items())


def figures_differ(held: Held, end: Done) -> str:
    """What the last chunk adds up in another way than a follower who holds this; else empty."""
    told, chars = end.metadata, sum(len(text) for agent, text in held.texts if not agent)
    figures = {
        "usage": (told.usage, add_up(held.usage, len(held.usage))),
        "model_calls": (told.model_calls, len(held.usage)),
        "tool_calls": (told.tool_calls, len(held.calls)),
        "chars": (told.chars, chars),
    }
    wrong = [
        f"{name} {is_}, not {is_held}" for name, (is_, is_held) in figures.items() if is_ != is_held
    ]
    return "; ".join(wrong)
