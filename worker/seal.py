"""Keeps a thread short: of its checkpoints only the last one stays, made to need no other.

Each turn leaves some 40 rows, and reading a thread walks all of them. Between turns the head gets a
snapshot of every channel that LangGraph keeps as deltas, and what led to it goes.

- S1  A thread with a fence is never sealed, nor one whose head has something pending.
- S2  The head keeps its id; it has no parent any more.
- S3  What sub-agents wrote for one call goes (their namespaces name the call by `:`); a graph that
      keeps a memory of its own between turns has a namespace without one, and keeps it.
"""

from aiosqlite import Connection

from worker.fence import find_fence
from worker.state import SealedHead

FROM_ROWS = 200
"""How many rows that may go make a thread long: those of some five turns with tools."""

MAY_GO = "(checkpoint_ns = '' OR instr(checkpoint_ns, ':') > 0)"
COUNT = f"""
SELECT (SELECT count(*) FROM checkpoints WHERE thread_id = ? AND {MAY_GO})
     + (SELECT count(*) FROM writes WHERE thread_id = ? AND {MAY_GO})
"""
SEAL = """
UPDATE checkpoints SET type = ?, checkpoint = ?, metadata = ?, parent_checkpoint_id = NULL
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?
"""
DELETE_CHECKPOINTS = f"""
DELETE FROM checkpoints WHERE thread_id = ? AND {MAY_GO}
    AND NOT (checkpoint_ns = '' AND checkpoint_id = ?)
"""
DELETE_WRITES = f"DELETE FROM writes WHERE thread_id = ? AND {MAY_GO}"


class HeadGone(Exception):
    """The checkpoint that was to be sealed is not there."""


async def is_long(connection: Connection, thread_id: str) -> bool:
    """The thread is worth sealing."""
    [(count,)] = await connection.execute_fetchall(COUNT, (thread_id, thread_id))
    return count >= FROM_ROWS


async def seal(connection: Connection, thread_id: str, head: SealedHead) -> None:
    """Writes the sealed head in place and deletes what it does not need; raises HeadGone."""
    if await find_fence(connection, thread_id):
        return
    row = (head.type, head.checkpoint, head.metadata, thread_id, head.checkpoint_id)
    if (await connection.execute(SEAL, row)).rowcount != 1:
        raise HeadGone(f"Thread {thread_id} has no checkpoint {head.checkpoint_id} any more.")
    await connection.execute(DELETE_CHECKPOINTS, (thread_id, head.checkpoint_id))
    await connection.execute(DELETE_WRITES, (thread_id,))
