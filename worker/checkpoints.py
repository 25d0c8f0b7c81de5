"""The checkpoint database, with a gate before it."""

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from worker.errors import DatabaseUnusable
from worker.gate import Gate, PutRefused
from worker.schema import create_tables


class TurnSaver(AsyncSqliteSaver):
    """LangGraph's saver, which writes only what `gate` lets pass."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        super().__init__(connection)
        self.gate = Gate()

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Saves a checkpoint of the open turn; raises TurnClosed and PutRefused."""
        async with self.gate.passing(_thread_of(config), checkpoint["id"]):
            return await super().aput(config, checkpoint, metadata, new_versions)

    # LangGraph looks for a parameter of the name `task_path`; without it the results of parallel
    # tools are replayed in random order.
    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Saves what a task of the open turn has written; raises TurnClosed and PutRefused."""
        async with self.gate.passing(_thread_of(config)):
            await super().aput_writes(config, writes, task_id, task_path)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The checkpoints, newest first; read whole, since LangGraph's own reads on while an agent
        looks at each, and lets nobody else at the database.
        """
        whole = super().alist(config, filter=filter, before=before, limit=limit)
        for found in [found async for found in whole]:
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        """Raises PutRefused: a thread that an agent deleted could not be restored."""
        raise PutRefused("An agent may not delete a thread.")


def name_file(path: Path) -> str:
    """The absolute name: SQLite takes some relative ones for a database in memory."""
    return str(path.absolute())


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncGenerator[TurnSaver]:
    """The saver on its one connection, tables in place; raises DatabaseUnusable."""
    async with aiosqlite.connect(name_file(path)) as connection:
        saver = TurnSaver(connection)
        try:
            # Before any graph is compiled: in strict mode that takes a copy of the saver.
            await saver.setup()
            await create_tables(connection)
        except sqlite3.Error as error:
            raise DatabaseUnusable(f"CHECKPOINT_DB {path} cannot be used: {error}") from error
        yield saver


def _thread_of(config: RunnableConfig) -> str:
    return str(config.get("configurable", {})["thread_id"])
