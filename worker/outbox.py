"""Ends of turns that the database knows and Redis may not.

- O1  A row is written in the transaction that ends the turn, and cleared once Redis has said that
      it knows: so an end is told at least once, and Redis takes it once.
"""

from aiosqlite import Connection

from worker.ending import Ending, decode_ending, encode_ending

SCHEMA = """
CREATE TABLE IF NOT EXISTS outbox (turn_id TEXT PRIMARY KEY, ending TEXT NOT NULL);
"""


async def post(connection: Connection, ending: Ending) -> None:
    """Keeps the end until it is told."""
    await connection.execute(
        "INSERT INTO outbox VALUES (?, ?)", (ending.turn.turn_id, encode_ending(ending))
    )


async def find(connection: Connection, turn_id: str) -> Ending | None:
    """The turn's end, if Redis may not know it."""
    cursor = await connection.execute("SELECT ending FROM outbox WHERE turn_id = ?", (turn_id,))
    row = await cursor.fetchone()
    return decode_ending(row[0]) if row else None


async def untold(connection: Connection) -> list[Ending]:
    """All of them, the oldest turn's first."""
    rows = await connection.execute_fetchall("SELECT ending FROM outbox ORDER BY turn_id")
    return [decode_ending(text) for (text,) in rows]


async def clear(connection: Connection, turn_id: str) -> None:
    """Redis knows the turn's end."""
    await connection.execute("DELETE FROM outbox WHERE turn_id = ?", (turn_id,))
