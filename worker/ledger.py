"""Every turn that has ended, however it ended: the thread's book, kept as long as the thread.

- L1  A turn is entered once, in the transaction that ends it; one that was cancelled before it
      began has ended in Redis, and is entered afterwards.
"""

import msgspec
from aiosqlite import Connection

from shared import characters
from shared.chunks import Terminal
from shared.record import Failure, TurnRecord
from worker.ending import Ending

SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (
    turn_id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    request TEXT NOT NULL,
    retry_of TEXT,
    outcome TEXT NOT NULL,
    failure TEXT,
    rolled_back_messages INTEGER,
    attempt INTEGER NOT NULL,
    run_id TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    chunk TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS ledger_by_thread ON ledger (thread_id, created_at, turn_id);
"""

ENTER = f"INSERT OR IGNORE INTO ledger VALUES ({', '.join('?' * 13)})"

_chunks: msgspec.json.Decoder[Terminal] = msgspec.json.Decoder(Terminal)
_failures = msgspec.json.Decoder(Failure)


async def enter(connection: Connection, ending: Ending) -> None:
    """Writes the turn down, with its last chunk; times are milliseconds since the epoch, by Redis'
    clock.
    """
    turn = ending.turn
    await connection.execute(
        ENTER,
        (
            *(turn.turn_id, turn.thread_id, turn.agent, _json(turn.request), turn.retry_of),
            *(ending.outcome, _json(ending.failure) if ending.failure else None),
            *(ending.rolled_back_messages, turn.attempt, turn.run_id),
            *(turn.created_at, turn.started_at, _json(ending.chunk)),
        ),
    )


async def find_end(connection: Connection, turn: TurnRecord) -> Ending | None:
    """How the turn ended, if it has."""
    cursor = await connection.execute(
        "SELECT chunk, failure FROM ledger WHERE turn_id = ?", (turn.turn_id,)
    )
    if (row := await cursor.fetchone()) is None:
        return None
    chunk, failure = row
    return Ending(
        turn=turn,
        chunk=_chunks.decode(chunk),
        failure=_failures.decode(failure) if failure else None,
    )


async def agents_of_threads(connection: Connection) -> dict[str, str]:
    """The agent of each thread's last turn."""
    # SQLite takes the other columns from the row with the maximum.
    rows = await connection.execute_fetchall(
        "SELECT thread_id, agent, max(created_at) FROM ledger GROUP BY thread_id"
    )
    return {thread_id: agent for thread_id, agent, _ in rows}


def _json(value: object) -> str:
    return characters.encode(value).decode()
