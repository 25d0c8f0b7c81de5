"""What a thread was before its turn, kept in the database until the turn has ended.

- F1  A thread has a row in `open_turns` if and only if it may differ from its fence. Both are
      written and cleared in one transaction.
- F2  The fence holds the key of every row of the thread, in all namespaces. LangGraph replaces no
      row of `checkpoints` (G4) and, of `writes`, only those whose `idx` is below 0: of these the
      fence has all columns. Row numbers would not do: VACUUM and deletes move them.
- F3  Fences are per thread. `running`: a worker is at it, or died. `failed`: it could not be
      restored, and the thread takes no turns until it is.
"""

from typing import NamedTuple

from aiosqlite import Connection

from shared.record import TurnRecord

SCHEMA = """
CREATE TABLE IF NOT EXISTS open_turns (
    thread_id TEXT PRIMARY KEY,
    turn_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'failed')),
    record TEXT NOT NULL,
    checkpoints INTEGER NOT NULL,
    writes INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS fenced_checkpoints (
    thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fenced_writes (
    thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, idx INTEGER,
    task_path TEXT, channel TEXT, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
) WITHOUT ROWID;
"""

COPY_CHECKPOINTS = """
INSERT INTO fenced_checkpoints
SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ?
"""
COPY_WRITES = """
INSERT INTO fenced_writes
SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel,
       CASE WHEN idx < 0 THEN type END, CASE WHEN idx < 0 THEN value END
FROM writes WHERE thread_id = ?
"""
HIGHEST = """
SELECT max(checkpoint_id), max(CASE WHEN checkpoint_ns = '' THEN checkpoint_id END)
FROM fenced_checkpoints WHERE thread_id = ?
"""


class Fence(NamedTuple):
    """A thread's fence. `record`: the open turn as JSON. `head`: the agent's own last checkpoint,
    `highest`: the last of any namespace; None for a new thread.
    """

    thread_id: str
    turn_id: str
    state: str
    record: str
    checkpoints: int
    writes: int
    head: str | None
    highest: str | None

    def belongs_to(self, turn: TurnRecord) -> bool:
        """The turn has begun, and its thread was not given up."""
        return self.turn_id == turn.turn_id and self.state == "running"


LANDED = """
SELECT EXISTS (SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''
AND checkpoint_id NOT IN (SELECT checkpoint_id FROM fenced_checkpoints
                          WHERE thread_id = ? AND checkpoint_ns = ''))
"""
NOW_HIGHEST = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?"
DELETE_ORPHANS = """
DELETE FROM writes WHERE thread_id = ?
AND (checkpoint_ns, checkpoint_id) NOT IN
    (SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ?)
AND (checkpoint_ns, checkpoint_id, task_id, idx) NOT IN
    (SELECT checkpoint_ns, checkpoint_id, task_id, idx FROM fenced_writes WHERE thread_id = ?)
"""


async def raise_fence(connection: Connection, thread_id: str, turn_id: str, record: str) -> Fence:
    """Fences a thread for its turn; sqlite3.IntegrityError when it has a fence."""
    checkpoints = (await connection.execute(COPY_CHECKPOINTS, (thread_id,))).rowcount
    writes = (await connection.execute(COPY_WRITES, (thread_id,))).rowcount
    await connection.execute(
        "INSERT INTO open_turns VALUES (?, ?, 'running', ?, ?, ?)",
        (thread_id, turn_id, record, checkpoints, writes),
    )
    fence = await find_fence(connection, thread_id)
    assert fence
    return fence


async def find_fence(connection: Connection, thread_id: str) -> Fence | None:
    """The thread's fence, if it has one."""
    cursor = await connection.execute(
        "SELECT turn_id, state, record, checkpoints, writes FROM open_turns WHERE thread_id = ?",
        (thread_id,),
    )
    if (row := await cursor.fetchone()) is None:
        return None
    [(highest, head)] = await connection.execute_fetchall(HIGHEST, (thread_id,))
    turn_id, state, record, checkpoints, writes = row
    return Fence(thread_id, turn_id, state, record, checkpoints, writes, head, highest)


async def has_landed(connection: Connection, fence: Fence) -> bool:
    """The turn's input is in a checkpoint, from which LangGraph can go on."""
    twice = (fence.thread_id, fence.thread_id)
    [(landed,)] = await connection.execute_fetchall(LANDED, twice)
    return bool(landed)


async def take_up(connection: Connection, fence: Fence, record: str) -> Fence:
    """Has the fence stand for one more run, which goes on from what the last one has written.

    Of writes whose checkpoint has not landed LangGraph knows nothing: they go.
    """
    thread_id = fence.thread_id
    await connection.execute(DELETE_ORPHANS, (thread_id, thread_id, thread_id))
    await rewrite_record(connection, fence.turn_id, record)
    [(highest,)] = await connection.execute_fetchall(NOW_HIGHEST, (thread_id,))
    return fence._replace(record=record, highest=highest)


async def rewrite_record(connection: Connection, turn_id: str, record: str) -> None:
    """Keeps the open turn as it is now."""
    await connection.execute(
        "UPDATE open_turns SET record = ? WHERE turn_id = ?", (record, turn_id)
    )


async def fenced_threads(connection: Connection) -> list[str]:
    """The threads that have a fence, those of the oldest turns first."""
    rows = await connection.execute_fetchall("SELECT thread_id FROM open_turns ORDER BY turn_id")
    return [thread_id for (thread_id,) in rows]


async def fenced_pending(connection: Connection, fence: Fence) -> set[tuple[str, str]]:
    """Task and channel of each write that was pending on the head before the turn."""
    rows = await connection.execute_fetchall(
        "SELECT task_id, channel FROM fenced_writes "
        "WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?",
        (fence.thread_id, fence.head),
    )
    return {(task_id, channel) for task_id, channel in rows}


async def mark_failed(connection: Connection, thread_id: str) -> None:
    """The thread could not be restored."""
    await connection.execute(
        "UPDATE open_turns SET state = 'failed' WHERE thread_id = ?", (thread_id,)
    )


async def lower_fence(connection: Connection, thread_id: str) -> None:
    """The thread is as it should be."""
    for table in ("fenced_checkpoints", "fenced_writes", "open_turns"):
        await connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))
