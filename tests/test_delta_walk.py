"""The installed saver finds a checkpoint's ancestors by their links, whatever their ids' order.

Ids rise only within one process. A saver that also asks for rising ids loses, without an error, the
parent whose id sorts above its child's (langgraph #8550), and the thread forgets what was in it.
"""

import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    DeltaChannelHistory,
    empty_checkpoint,
)
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

CHANNELS = ["said", "seen"]
LOWEST, LOW, HIGH = (f"1f0{n}0000-0000-6000-8000-000000000000" for n in "abc")


class Row(NamedTuple):
    """A checkpoint: what its channels hold, and what was written to them after it."""

    id: str
    parent: str | None
    values: Mapping[str, Any] = {}
    writes: Sequence[tuple[str, Any]] = ()

    @property
    def checkpoint(self) -> Checkpoint:
        return {**empty_checkpoint(), "id": self.id, "channel_values": dict(self.values)}


History = Mapping[str, DeltaChannelHistory]
Hear = Callable[[str], None]
Walk = Callable[[Sequence[Row], str, Hear], Awaitable[History]]


def at(checkpoint_id: str | None) -> RunnableConfig:
    found = {"checkpoint_id": checkpoint_id} if checkpoint_id else {}
    return {"configurable": {"thread_id": "t", "checkpoint_ns": "", **found}}


def store(saver: SqliteSaver, rows: Sequence[Row]) -> None:
    for row in rows:
        stored = saver.put(at(row.parent), row.checkpoint, {}, {})
        saver.put_writes(stored, row.writes, "task")


async def walk_sync(rows: Sequence[Row], target: str, hear: Hear) -> History:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        store(saver, rows)
        saver.conn.set_trace_callback(hear)
        return saver.get_delta_channel_history(config=at(target), channels=CHANNELS)


async def walk_async(rows: Sequence[Row], target: str, hear: Hear) -> History:
    async with AsyncSqliteSaver.from_conn_string(":memory:") as saver:
        for row in rows:
            stored = await saver.aput(at(row.parent), row.checkpoint, {}, {})
            await saver.aput_writes(stored, row.writes, "task")
        await cast(Any, saver.conn).set_trace_callback(hear)
        return await saver.aget_delta_channel_history(config=at(target), channels=CHANNELS)


def walk_step_by_step(rows: Sequence[Row], target: str) -> History:
    """As every saver inherits it: one checkpoint after the other, each asked for by its id."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        store(saver, rows)
        inherited = BaseCheckpointSaver[str].get_delta_channel_history
        return inherited(saver, config=at(target), channels=CHANNELS)


def ignore(_: str) -> None:
    """For a walk whose statements nobody asks about."""


both_savers = pytest.mark.parametrize("walk", [walk_sync, walk_async], ids=["sync", "async"])


@both_savers
@pytest.mark.parametrize(
    ("parent", "child"),
    [(HIGH, LOW), (LOW, HIGH)],
    ids=["parent sorts above its child", "parent sorts below its child"],
)
async def test_a_parent_is_found_on_either_side_of_its_child(
    walk: Walk, parent: str, child: str
) -> None:
    rows = [
        Row(LOWEST, None, {"said": "not the nearest", "seen": "far"}),
        Row(parent, LOWEST, {"said": "once"}, [("said", "twice"), ("seen", "near")]),
        Row(child, parent, {}, [("said", "not yet the child's own")]),
    ]
    found = await walk(rows, child, ignore)
    assert found == {
        "said": {"seed": "once", "writes": [("task", "said", "twice")]},
        "seen": {"seed": "far", "writes": [("task", "seen", "near")]},
    }
    assert found == walk_step_by_step(rows, child)


@both_savers
async def test_a_long_chain_of_falling_ids_reaches_its_root(walk: Walk) -> None:
    chain = [f"1f0a0000-0000-6000-8000-{200 - n:012}" for n in range(200)]
    rows = [
        Row(checkpoint_id, parent, {} if parent else {"said": "root"}, [("said", checkpoint_id)])
        for parent, checkpoint_id in zip([None, *chain], chain, strict=False)
    ]
    found = await walk(rows, chain[-1], ignore)
    assert found["said"].get("seed") == "root"
    assert [write for *_, write in found["said"]["writes"]] == chain[:-1]
    assert found == walk_step_by_step(rows, chain[-1])


@both_savers
@pytest.mark.timeout(10)  # without its guard, the walk never ends
async def test_a_chain_that_bites_its_own_tail_ends(walk: Walk) -> None:
    rows = [
        Row(LOWEST, None, {}, [("said", "one")]),
        Row(LOW, LOWEST, {}, [("said", "two")]),
        Row(HIGH, LOW),
        Row(LOWEST, HIGH),  # stored again, now as a child of its own grandchild
    ]
    found = await walk(rows, HIGH, ignore)
    assert found["said"] == {"writes": [("task", "said", "one"), ("task", "said", "two")]}


@both_savers
async def test_each_step_looks_its_parent_up_by_the_primary_key(walk: Walk) -> None:
    """Else a walk reads the whole thread at each step: quadratic in the thread's length."""
    heard: list[str] = []
    await walk([Row(LOW, None), Row(HIGH, LOW)], HIGH, heard.append)
    statement = next(sql for sql in heard if "RECURSIVE" in sql)
    with SqliteSaver.from_conn_string(":memory:") as saver:
        saver.setup()
        plan = read_plan(saver.conn, statement)
    step = next(node for node, _, detail in plan if detail == "RECURSIVE STEP")
    scan, lookup = [detail for _, parent, detail in plan if parent == step]
    assert re.fullmatch(r"SCAN \w+", scan)
    assert re.fullmatch(
        r"SEARCH \w+ USING INDEX sqlite_autoindex_checkpoints_1 "
        r"\(thread_id=\? AND checkpoint_ns=\? AND checkpoint_id=\?\)",
        lookup,
    )


def read_plan(connection: sqlite3.Connection, statement: str) -> list[tuple[int, int, str]]:
    """The plan's nodes: id, parent's id, and what SQLite says of it."""
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}")
    return [(node, parent, detail) for node, parent, _, detail in rows]
