"""Every turn that has ended, however it ended: the thread's book, kept as long as the thread.

- L1  A turn is entered once, in the transaction that ends it.
"""

from aiosqlite import Connection

from shared import characters
from worker.ending import Ending

SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (
    turn_id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    request TEXT NOT NULL,
    retry_of TEXT,
    outcome TEXT NOT NULL,
    error_code TEXT,
    error_message TEXT,
    rolled_back_messages INTEGER,
    attempt INTEGER NOT NULL,
    run_id TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    elapsed_s REAL NOT NULL,
    usage TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS ledger_by_thread ON ledger (thread_id, created_at, turn_id);
"""

ENTER = f"INSERT OR IGNORE INTO ledger VALUES ({', '.join('?' * 15)})"


async def enter(connection: Connection, ending: Ending) -> None:
    """Writes the turn down; times are milliseconds since the epoch, by Redis' clock."""
    turn, failure, summary = ending.turn, ending.failure, ending.chunk.metadata
    await connection.execute(
        ENTER,
        (
            *(turn.turn_id, turn.thread_id, turn.agent, _json(turn.request), turn.retry_of),
            *(ending.outcome, failure.code if failure else None),
            *(characters.mend(failure.message) if failure else None, ending.rolled_back_messages),
            *(turn.attempt, turn.run_id, turn.created_at, turn.started_at, summary.elapsed_s),
            _json(summary.usage),
        ),
    )


def _json(value: object) -> str:
    return characters.encode(value).decode()
