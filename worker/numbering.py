"""How far a turn's chunks may have been told, so that no number is given to two of them.

- N1  Before a chunk is told of a turn that has begun, the database has its number, or a higher one:
      `bound` is written some steps ahead, and exactly when the turn is let go in order.
- N2  `mark` is that of a Redis (shared/lane.py) which was told all numbers so far. Another one may
      have lost the end of the log; then worker/lost.py goes on above the bound.
- N3  A database that refuses costs no chunk: then a number may be used twice, if Redis and the
      worker are lost as well.

A row stands from the turn's begin to its end.
"""

from typing import NamedTuple

from aiosqlite import Connection

SCHEMA = """
CREATE TABLE IF NOT EXISTS numbering (
    turn_id TEXT PRIMARY KEY,
    bound INTEGER NOT NULL,
    mark TEXT NOT NULL
);
"""

AHEAD = 100
"""A transaction for so many chunks; so many more stand-ins, at most, than chunks were lost."""

BEGIN = """
INSERT INTO numbering VALUES (:turn, :bound, coalesce(:mark, '')) ON CONFLICT DO UPDATE
SET bound = max(bound, :bound), mark = coalesce(:mark, mark)
RETURNING bound
"""
RESERVE = "UPDATE numbering SET bound = ?, mark = ? WHERE turn_id = ?"


class Numbering(NamedTuple):
    """The highest number that may have been told, and the mark of the Redis that had the log."""

    bound: int
    mark: str


async def find_numbering(connection: Connection, turn_id: str) -> Numbering | None:
    """None when the turn has not begun."""
    cursor = await connection.execute(
        "SELECT bound, mark FROM numbering WHERE turn_id = ?", (turn_id,)
    )
    row = await cursor.fetchone()
    return Numbering(*row) if row else None


async def begin(connection: Connection, turn_id: str, seq: int, mark: str | None) -> int:
    """For a turn whose chunks have come to number `seq`; answers up to which they may be told.

    `mark`: None keeps the one that is there.
    """
    values = {"turn": turn_id, "bound": seq + AHEAD, "mark": mark}
    cursor = await connection.execute(BEGIN, values)
    row = await cursor.fetchone()
    assert row
    return row[0]


async def reserve(connection: Connection, turn_id: str, bound: int, mark: str) -> None:
    """For a turn that has begun and not ended, of which the Redis of that mark has all so far."""
    await connection.execute(RESERVE, (bound, mark, turn_id))


async def set_bound(connection: Connection, turn_id: str, bound: int) -> None:
    """For a turn that has begun and not ended."""
    await connection.execute("UPDATE numbering SET bound = ? WHERE turn_id = ?", (bound, turn_id))


async def clear(connection: Connection, turn_id: str) -> None:
    """The turn has ended."""
    await connection.execute("DELETE FROM numbering WHERE turn_id = ?", (turn_id,))
