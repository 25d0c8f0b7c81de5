"""The clock that LangGraph makes the ids of checkpoints from, and its sudden steps."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from random import Random
from typing import Any, cast
from unittest.mock import patch

from langgraph.checkpoint.base import id as ids

HOUR_NS = 3600 * 10**9


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self._offset_ns = 0

    def time_ns(self) -> int:
        return time.time_ns() + self._offset_ns

    def step(self, random: Random) -> None:
        """Goes back or forth, as between two runs of a worker: the last id is forgotten, too."""
        self._offset_ns += random.randint(-HOUR_NS, HOUR_NS)
        cast(Any, ids)._last_v6_timestamp = None


@contextmanager
def set_clock() -> Generator[Clock]:
    """The clock of all ids to come."""
    clock = Clock()
    last = cast(Any, ids)._last_v6_timestamp
    with patch.object(ids, "time", clock), patch.object(ids, "_last_v6_timestamp", last):
        yield clock
