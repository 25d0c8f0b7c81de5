"""What can be seen of a service from outside: its database, its Redis, its model server."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fake_llama import FakeLlama
from tests.redis_seen import RedisSeen, log_of
from tests.service import Service
from tests.traceless.rows import Rows, read_rows
from tests.traceless.tools import Tools


@dataclass(frozen=True)
class View:
    """`tools`: those of its agent."""

    service: Service
    llama: FakeLlama
    tools: Tools
    database: Path
    redis: RedisSeen

    def rows(self, thread_id: str) -> Rows:
        """A thread as the database has it."""
        return read_rows(self.database, thread_id)

    def log(self, turn_id: str) -> list[dict[str, Any]]:
        """A turn's chunks as Redis has them."""
        return log_of(self.redis, turn_id)
