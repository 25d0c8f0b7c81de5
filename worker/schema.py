"""The tables beside LangGraph's own, in a new database and in one of an earlier version."""

import json
from typing import cast

from aiosqlite import Connection

from shared.record import TurnRequest
from worker import fence, ledger, numbering, outbox, register

UPGRADE = """
ALTER TABLE ledger ADD COLUMN finished_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN runs TEXT NOT NULL DEFAULT '[]';
ALTER TABLE ledger ADD COLUMN said TEXT NOT NULL DEFAULT '{}';
UPDATE ledger SET finished_at =
    created_at + CAST(round(1000 * json_extract(chunk, '$.metadata.elapsed_s')) AS INTEGER);
"""
# SQLite takes the other columns from the row with the minimum.
FIRST_TURNS = "SELECT thread_id, agent, request, min(created_at) FROM ledger GROUP BY thread_id"
ENTER = (
    "INSERT OR IGNORE INTO threads (thread_id, agent, title, created_at, updated_at) "
    "VALUES (?, ?, ?, ?, ?)"
)
COUNT = """
UPDATE threads SET
    updated_at = (SELECT max(finished_at) FROM ledger WHERE thread_id = threads.thread_id),
    turns = (SELECT count(*) FROM ledger
             WHERE thread_id = threads.thread_id AND outcome = 'done'),
    context_tokens = (SELECT json_extract(chunk, '$.metadata.context_tokens') FROM ledger
                      WHERE thread_id = threads.thread_id AND outcome = 'done'
                      ORDER BY created_at DESC, turn_id DESC LIMIT 1)
"""


async def create_tables(connection: Connection) -> None:
    """Sees that all tables are there; raises sqlite3.Error."""
    for module in (fence, ledger, numbering, outbox, register):
        await connection.executescript(module.SCHEMA)
    if "finished_at" not in await _columns(connection, "ledger"):
        await _upgrade(connection)


async def _columns(connection: Connection, table: str) -> set[str]:
    rows = await connection.execute_fetchall(f"PRAGMA table_info({table})")
    return {cast(str, row[1]) for row in rows}


async def _upgrade(connection: Connection) -> None:
    """Of a database from before 2026-12-06, when the ledger knew less and there was no register."""
    await connection.executescript(f"BEGIN IMMEDIATE;{UPGRADE}")
    for thread_id, agent, request, at in list(await connection.execute_fetchall(FIRST_TURNS)):
        title = register.title_of(TurnRequest(**json.loads(request)))
        await connection.execute(ENTER, (thread_id, agent, title, at, at))
    await connection.execute(COUNT)
    await connection.commit()
