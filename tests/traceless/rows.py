"""What LangGraph has written of a thread, row for row."""

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

CHECKPOINT = "checkpoint_ns, checkpoint_id"
TABLES = {"checkpoints": CHECKPOINT, "writes": f"{CHECKPOINT}, task_id, idx"}
"""Each with what tells the rows of a thread apart."""

TASK_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SHOWN = 5

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]
"""By table, in the order of their keys."""


def read_rows(database: Path, thread_id: str) -> Rows:
    """Every column of every row at one instant, by a connection that can do no harm."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        return {
            table: connection.execute(
                f"SELECT * FROM {table} WHERE thread_id = ? ORDER BY {key}", [thread_id]
            ).fetchall()
            for table, key in TABLES.items()
        }


def changes(before: Rows, after: Rows) -> list[str]:
    """What is no longer the same, a line for each row; empty only when all is."""
    lines: list[str] = []
    for table in TABLES:
        gone, come = Counter(before[table]), Counter(after[table])
        lines += [f"- {table} {row[1:SHOWN]}" for row in (gone - come).elements()]
        lines += [f"+ {table} {row[1:SHOWN]}" for row in (come - gone).elements()]
    if not lines and before != after:
        lines.append("the order")
    return lines


def count_by_kind(rows: Rows) -> Counter[tuple[str, str]]:
    """Rows by table and kind of namespace; each run of a sub-agent has a namespace of its own."""
    return Counter((table, TASK_ID.sub("*", row[1])) for table in TABLES for row in rows[table])


def count_messages(rows: Rows) -> int:
    """The messages of the main agent, those included whose step is not over.

    Each is a write of its own; one whose checkpoint is still to come is not there yet.
    """
    return _namespaces_of_messages(rows).count("")


def count_within(rows: Rows) -> int:
    """Likewise, the messages of its sub-agents, with what they were told."""
    namespaces = _namespaces_of_messages(rows)
    return len(namespaces) - namespaces.count("")


def _namespaces_of_messages(rows: Rows) -> list[str]:
    checkpoints = {row[1:3] for row in rows["checkpoints"]}
    return [
        namespace
        for _, namespace, checkpoint, _, _, _, channel, *_ in rows["writes"]
        if channel == "messages" and (namespace, checkpoint) in checkpoints
    ]


def updates_since_snapshot(rows: Rows) -> int:
    """How often the head's messages were added to since all of them were last written out."""
    *_, metadata = [row for row in rows["checkpoints"] if row[1] == ""][-1]
    counters = json.loads(metadata).get("counters_since_delta_snapshot", {})
    updates, _ = counters.get("messages", (0, 0))
    return updates


def is_sealed(rows: Rows) -> bool:
    """One checkpoint is all there is."""
    return [len(rows[table]) for table in TABLES] == [1, 0]


def has_compacted(rows: Rows) -> bool:
    """A summary stands for the first messages."""
    return any(row[6] == "_summarization_event" for row in rows["writes"])
