"""A thread made row for row what its fence says that it was.

- R1  Runs inside one transaction on the saver's own connection, with nothing put meanwhile and the
      gate closed for the turn.
- R2  Afterwards the thread has exactly the keys of the fence, and of the rows that may have been
      replaced all columns. Counted before the fence is lowered; else the transaction is undone.

In time it depends on how many rows the thread has, not on what they hold.
"""

from aiosqlite import Connection

from worker.fence import Fence, lower_fence

DELETE_CHECKPOINTS = """
DELETE FROM checkpoints WHERE thread_id = ? AND (checkpoint_ns, checkpoint_id) NOT IN
    (SELECT checkpoint_ns, checkpoint_id FROM fenced_checkpoints WHERE thread_id = ?)
"""
DELETE_WRITES = """
DELETE FROM writes WHERE thread_id = ? AND (checkpoint_ns, checkpoint_id, task_id, idx) NOT IN
    (SELECT checkpoint_ns, checkpoint_id, task_id, idx FROM fenced_writes WHERE thread_id = ?)
"""
COLUMNS = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, value"
REPLACE_WRITES = f"""
INSERT OR REPLACE INTO writes ({COLUMNS})
SELECT {COLUMNS} FROM fenced_writes WHERE thread_id = ? AND idx < 0
EXCEPT
SELECT {COLUMNS} FROM writes WHERE thread_id = ? AND idx < 0
"""
FENCED = "SELECT 1 FROM open_turns WHERE thread_id = ? AND turn_id = ?"
COUNT = """
SELECT (SELECT count(*) FROM checkpoints WHERE thread_id = ?),
       (SELECT count(*) FROM writes WHERE thread_id = ?)
"""


class RestoreFailed(Exception):
    """The thread is not what it was before its turn."""


async def restore(connection: Connection, fence: Fence) -> None:
    """Takes everything out of the thread that its turn put in; raises RestoreFailed."""
    twice = (fence.thread_id, fence.thread_id)
    # Without its rows the fence would say that the thread had none.
    if not list(await connection.execute_fetchall(FENCED, (fence.thread_id, fence.turn_id))):
        raise RestoreFailed(f"Thread {fence.thread_id} has no fence of turn {fence.turn_id}.")
    await connection.execute(DELETE_CHECKPOINTS, twice)
    await connection.execute(DELETE_WRITES, twice)
    await connection.execute(REPLACE_WRITES, twice)
    [(checkpoints, writes)] = await connection.execute_fetchall(COUNT, twice)
    if (checkpoints, writes) != (fence.checkpoints, fence.writes):
        raise RestoreFailed(
            f"Thread {fence.thread_id} has {checkpoints} checkpoints and {writes} writes; "
            f"it had {fence.checkpoints} and {fence.writes}."
        )
    await lower_fence(connection, fence.thread_id)
