"""The Lua scripts, one file for each transition of a turn, and what several of them are given."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Protocol

from shared import keys
from shared.record import TurnRecord
from shared.redis import Redis

FOLDER = Path(__file__).parent / "lua"


class Script(Protocol):
    """A script that Redis has been told of; it is sent again when Redis has forgotten it."""

    def __call__(self, keys: list[str], args: list[str | int | bytes]) -> Awaitable[Any]: ...


def load(redis: Redis, *names: str) -> Script:
    """The script of the last file, with the functions of the files before it."""
    source = "\n".join((FOLDER / f"{name}.lua").read_text() for name in names)
    return redis.register_script(source)


def ending_keys(turn: TurnRecord, lane: str) -> list[str]:
    """What `ending.lua` touches, in its order."""
    return [
        keys.turn(turn.turn_id),
        keys.log(turn.turn_id),
        keys.channel(turn.turn_id),
        keys.queue(lane),
        keys.running(lane),
        keys.thread(turn.thread_id),
        keys.idempotency(turn.idempotency_key),
        keys.job(turn.turn_id),
    ]
