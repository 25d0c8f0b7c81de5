"""The checkpoint database, and what keeps it from being opened."""

import asyncio
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.pregel._checkpoint import (  # pyright: ignore[reportMissingTypeStubs]
    put_writes_accepts_task_path,
)

from tests import memory
from worker.checkpoints import TurnSaver, open_checkpoints
from worker.database import prepare_file
from worker.errors import DatabaseUnusable
from worker.gate import OpenTurn

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


async def put(path: Path) -> str:
    """Stores a checkpoint and answers its id."""
    async with open_checkpoints(path) as saver:
        saver.gate.open(OpenTurn("turn", "t", ""))
        return await memory.put(saver, thread_id="t")


async def latest(path: Path) -> str | None:
    async with open_checkpoints(path) as saver:
        found = await saver.aget_tuple(CONFIG)
    return found.checkpoint["id"] if found else None


async def test_what_is_stored_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    prepare_file(path)
    assert await latest(path) is None
    checkpoint_id = await put(path)
    prepare_file(path)
    assert await latest(path) == checkpoint_id


async def test_no_name_of_a_file_means_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare_file(Path(":memory:"))
    checkpoint_id = await put(Path(":memory:"))
    assert await latest(Path(":memory:")) == checkpoint_id


async def test_a_file_that_is_no_database_is_told_in_sqlite_s_words(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    path.write_bytes(b"This is a letter to my landlord. " * 100)
    with pytest.raises(DatabaseUnusable, match=r"^CHECKPOINT_DB .*file is not a database"):
        await put(path)
    assert path.read_bytes().startswith(b"This is a letter")


async def test_langgraph_finds_the_place_of_a_task_in_a_put(saver: TurnSaver) -> None:
    # Without it the results of parallel tools are replayed in random order.
    assert put_writes_accepts_task_path(saver.aput_writes)


async def test_who_looks_at_the_history_keeps_nobody_from_the_database(saver: TurnSaver) -> None:
    saver.gate.open(OpenTurn("turn", "t", ""))
    for _ in range(2):
        await memory.put(saver, thread_id="t")
    seen = 0
    async for _ in saver.alist(CONFIG):
        async with asyncio.timeout(30):
            assert await saver.aget_tuple(CONFIG)
        seen += 1
    assert seen == 2
