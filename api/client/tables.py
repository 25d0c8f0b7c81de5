"""A turn, the queue and the status as a person reads them."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import Struct

from api.client.errors import NotTurnkeeper
from api.client.terminal import one_line, preview

HEADINGS = ("place", "turn", "thread", "agent", "input")
WIDTH = 60


class _Turn(Struct):
    turn_id: str
    thread_id: str
    agent: str
    status: str
    text: str | None = None
    input: dict[str, Any] | None = None
    position: int | None = None


class _Queue(Struct):
    running: _Turn | None
    waiting: list[_Turn]
    depth: int
    limit: int
    worker: str
    awaiting_decision: list[_Turn] = []


def describe_turn(body: dict[str, Any]) -> str:
    """A line on its status; raises NotTurnkeeper."""
    try:
        turn = msgspec.convert(body, _Turn)
    except msgspec.ValidationError as error:
        raise NotTurnkeeper(f"the turn cannot be read: {error}") from None
    return one_line(f"turn {turn.turn_id}: {turn.status}")


def describe_queue(body: dict[str, Any]) -> str:
    """A line on the whole and one for each turn; raises NotTurnkeeper."""
    try:
        queue = msgspec.convert(body, _Queue)
    except msgspec.ValidationError as error:
        raise NotTurnkeeper(f"the queue cannot be read: {error}") from None
    turns = [*([queue.running] if queue.running else []), *queue.waiting, *queue.awaiting_decision]
    head = f"{queue.depth} of {queue.limit} places taken, worker {one_line(queue.worker)}"
    return "\n".join([head, *_align([HEADINGS, *map(_row, turns)])]) if turns else head


def describe_status(body: dict[str, Any]) -> str:
    """A line for each figure."""
    return "\n".join(_align((_label(name), _plain(value)) for name, value in body.items()))


def _row(turn: _Turn) -> tuple[str, ...]:
    waiting = turn.status == "queued" and turn.position is not None
    content = turn.text if turn.text is not None else str(turn.input or "")
    place = str(turn.position) if waiting else turn.status.replace("_", " ")
    return (
        *map(one_line, (place, turn.turn_id, turn.thread_id, turn.agent)),
        preview(content, WIDTH),
    )


def _align(rows: Iterable[tuple[str, ...]]) -> list[str]:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def _label(name: str) -> str:
    return one_line(name).replace("_", " ")


def _plain(value: Any) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        parts = cast(dict[str, Any], value)
        return ", ".join(f"{_label(name)} {_plain(part)}" for name, part in parts.items())
    return one_line(str(value))
