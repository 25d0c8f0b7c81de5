"""Ends of turns that the database knows and Redis may not.

- O1  A row is written in the transaction that ends the turn, and cleared some time after Redis has
      said that it knows: so an end is told at least once, and Redis takes it once. It is told again
      at each start, and when Redis may have lost something.
- O2  That time is longer than the last second, which a Redis loses whose machine goes down.
"""

import logging
from collections.abc import Collection

import msgspec
from aiosqlite import Connection

from worker.ending import Ending, decode_ending, encode_ending

log = logging.getLogger(__name__)

SCHEMA = """
CREATE TABLE IF NOT EXISTS outbox (turn_id TEXT PRIMARY KEY, ending TEXT NOT NULL);
"""


async def post(connection: Connection, ending: Ending) -> None:
    """Keeps the end until it is told."""
    await connection.execute(
        "INSERT INTO outbox VALUES (?, ?)", (ending.turn.turn_id, encode_ending(ending))
    )


async def untold(connection: Connection) -> list[Ending]:
    """All of them that can be read, the oldest turn's first."""
    rows = await connection.execute_fetchall("SELECT turn_id, ending FROM outbox ORDER BY turn_id")
    read = [_read(turn_id, text) for turn_id, text in rows]
    return [ending for ending in read if ending]


def _read(turn_id: str, text: str) -> Ending | None:
    try:
        return decode_ending(text)
    except msgspec.MsgspecError as error:
        log.error("The end of turn %s cannot be read: %s", turn_id, type(error).__name__)
        return None


async def find(connection: Connection, turn_id: str) -> Ending | None:
    """The turn's end, if it is still here."""
    cursor = await connection.execute("SELECT ending FROM outbox WHERE turn_id = ?", (turn_id,))
    row = await cursor.fetchone()
    return _read(turn_id, row[0]) if row else None


async def clear(connection: Connection, turn_ids: Collection[str]) -> None:
    """Redis knows the ends of these, and will not forget them again."""
    await connection.executemany(
        "DELETE FROM outbox WHERE turn_id = ?", [(turn_id,) for turn_id in turn_ids]
    )
