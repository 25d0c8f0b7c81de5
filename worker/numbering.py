"""How far a turn's chunks may have been told, so that no number is given to two of them.

- N1  Before a chunk is told, the database has its number, or a higher one: `bound` is written some
      steps ahead, and exactly when the turn is let go in order.
- N2  `redis` is the mark of the Redis that was told (shared/lane.py). Another one may have lost the
      end of its log; then worker/lost.py goes on above the bound.

A row stands from the turn's begin to its end.
"""

from typing import NamedTuple

from aiosqlite import Connection

SCHEMA = """
CREATE TABLE IF NOT EXISTS numbering (
    turn_id TEXT PRIMARY KEY,
    bound INTEGER NOT NULL,
    redis TEXT NOT NULL
);
"""

AHEAD = 100
"""A transaction for so many chunks, and at most so many stand-ins for chunks that were lost."""

RESERVE = """
INSERT INTO numbering VALUES (?, ?, ?) ON CONFLICT DO UPDATE
SET bound = max(bound, excluded.bound), redis = excluded.redis
RETURNING bound
"""
SETTLE = "UPDATE numbering SET bound = ?, redis = ? WHERE turn_id = ?"


class Numbering(NamedTuple):
    """The turn's highest number that may have been told, and to which Redis."""

    bound: int
    redis: str


async def find_numbering(connection: Connection, turn_id: str) -> Numbering | None:
    """None when the turn has not begun."""
    cursor = await connection.execute(
        "SELECT bound, redis FROM numbering WHERE turn_id = ?", (turn_id,)
    )
    row = await cursor.fetchone()
    return Numbering(*row) if row else None


async def reserve(connection: Connection, turn_id: str, seq: int, redis: str) -> int:
    """Lets numbers from `seq` on be told; answers up to which."""
    cursor = await connection.execute(RESERVE, (turn_id, seq + AHEAD, redis))
    row = await cursor.fetchone()
    assert row
    return row[0]


async def settle(connection: Connection, turn_id: str, numbering: Numbering) -> None:
    """Nothing more is told, and this is how far it came."""
    await connection.execute(SETTLE, (numbering.bound, numbering.redis, turn_id))


async def clear(connection: Connection, turn_id: str) -> None:
    """The turn has ended."""
    await connection.execute("DELETE FROM numbering WHERE turn_id = ?", (turn_id,))
