"""The register of threads: what a list of them shows, kept up with each turn.

- T1  A thread is entered when its first turn begins, or ends without having begun.
- T2  Its agent, its age and the title that nobody gave it are those of its first turn, in whichever
      order turns are entered.
- T3  What a turn counts for is counted in the transaction that enters it into the ledger.
"""

import json
import sqlite3
from typing import NamedTuple

from aiosqlite import Connection

from shared import characters
from shared.record import TurnRecord, TurnRequest
from shared.threads import TITLE_CHARS
from worker.ending import Ending

SCHEMA = """
CREATE TABLE IF NOT EXISTS threads (
    thread_id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    title TEXT NOT NULL,
    named INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    turns INTEGER NOT NULL DEFAULT 0,
    context_tokens INTEGER
);
CREATE INDEX IF NOT EXISTS threads_by_time ON threads (updated_at, thread_id);
"""

NOTE = """
INSERT INTO threads (thread_id, agent, title, created_at, updated_at)
VALUES (:thread, :agent, :title, :at, :at) ON CONFLICT DO UPDATE SET
    agent = CASE WHEN :at < created_at THEN :agent ELSE agent END,
    title = CASE WHEN :at < created_at AND NOT named THEN :title ELSE title END,
    created_at = min(created_at, :at),
    updated_at = max(updated_at, :at)
RETURNING agent
"""
COUNT = "UPDATE threads SET updated_at = max(updated_at, ?) WHERE thread_id = ?"
COUNT_DONE = "UPDATE threads SET turns = turns + 1, context_tokens = ? WHERE thread_id = ?"
RENAME = "UPDATE threads SET title = ?, named = 1 WHERE thread_id = ?"
COLUMNS = "thread_id, agent, title, created_at, updated_at, turns, context_tokens"


class Entry(NamedTuple):
    """A thread's row. `turns`: how many were done. `context_tokens`: after the last of them."""

    thread_id: str
    agent: str
    title: str
    created_at: int
    updated_at: int
    turns: int
    context_tokens: int | None


async def note(connection: Connection, turn: TurnRecord) -> str:
    """Enters the turn's thread, and answers the agent that it keeps."""
    values = {
        "thread": turn.thread_id,
        "agent": turn.agent,
        "title": title_of(turn.request),
        "at": turn.created_at,
    }
    cursor = await connection.execute(NOTE, values)
    row = await cursor.fetchone()
    assert row
    return row[0]


async def count(connection: Connection, ending: Ending) -> None:
    """Counts the end of a turn that is entered now."""
    await note(connection, ending.turn)
    thread_id = ending.turn.thread_id
    await connection.execute(COUNT, (ending.finished_at, thread_id))
    if ending.outcome == "done":
        await connection.execute(COUNT_DONE, (ending.chunk.metadata.context_tokens, thread_id))


async def rename(connection: Connection, thread_id: str, title: str) -> bool:
    """Gives a thread its title; False when it is not entered."""
    return (await connection.execute(RENAME, (title, thread_id))).rowcount > 0


async def agents_of_threads(connection: Connection) -> dict[str, str]:
    """The agent that each thread keeps."""
    rows = await connection.execute_fetchall("SELECT thread_id, agent FROM threads")
    return {row[0]: row[1] for row in rows}


def find(connection: sqlite3.Connection, thread_id: str) -> Entry | None:
    """The thread's row, if it is entered."""
    query = f"SELECT {COLUMNS} FROM threads WHERE thread_id = ?"
    row = connection.execute(query, (thread_id,)).fetchone()
    return Entry(*row) if row else None


def title_of(request: TurnRequest) -> str:
    """The title of a thread that has been given none: the beginning of its first message."""
    if request.text is not None:
        return request.text[:TITLE_CHARS]
    return characters.mend(json.dumps(request.input, ensure_ascii=False)[:TITLE_CHARS])
