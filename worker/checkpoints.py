"""The checkpoint database."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from worker.errors import DatabaseUnusable


def name_file(path: Path) -> str:
    """The absolute name: SQLite takes some relative ones for a database in memory."""
    return str(path.absolute())


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncGenerator[AsyncSqliteSaver]:
    """The saver on its one connection, tables in place; raises DatabaseUnusable."""
    async with AsyncSqliteSaver.from_conn_string(name_file(path)) as saver:
        try:
            # Before any graph is compiled: in strict mode that takes a copy of the saver.
            await saver.setup()
        except sqlite3.Error as error:
            raise DatabaseUnusable(f"CHECKPOINT_DB {path} cannot be used: {error}") from error
        yield saver
