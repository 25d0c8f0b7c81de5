"""Agents that do not stop when they are told to, until a file lets them go: AGENTS=NAME=…:build."""

# LangGraph's own annotations are unknown to a strict reader.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from langgraph.graph import MessagesState, StateGraph

from worker import run, stop
from worker.agents.registry import Deps
from worker.graph import Graph

FOLDER = "STUBBORN_FOLDER"
"""The variable that says where `at_work` appears, and where `free` lets them go."""

KIND = "STUBBORN_KIND"
NAME = "stubborn"
AGENTS = f"{NAME}=tests.stubborn:build"


def swallow_cancels() -> Any:
    async def node(_: MessagesState) -> dict[str, Any]:
        while not _at_work():
            try:
                await asyncio.sleep(0.002)
            except asyncio.CancelledError:
                continue
        return {"messages": [("ai", "At last.")]}

    return node


def block(wait: Callable[[], object], *, in_thread: bool) -> Any:
    """A node that waits without `await`, in a thread of LangGraph's or in the event loop."""

    def node(_: MessagesState) -> dict[str, Any]:
        while not _at_work():
            wait()
        return {"messages": [("ai", "At last.")]}

    async def anode(state: MessagesState) -> dict[str, Any]:
        return node(state)

    return node if in_thread else anode


def wait_for_a_lock() -> None:
    """Python hears of no signal in there."""
    file = _folder() / "locked.sqlite"
    holder = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")
    sqlite3.connect(file, timeout=3600).execute("CREATE TABLE never (x)")


def hold_the_log() -> None:
    """As a logger does to whose reader nobody listens any more."""
    for handler in logging.getLogger().handlers:
        handler.acquire()
    time.sleep(3600)


KINDS: dict[str, Callable[[], Any]] = {
    "swallows its cancellation": swallow_cancels,
    "waits in a thread": partial(block, partial(time.sleep, 3600), in_thread=True),
    "is busy in the loop": partial(block, lambda: None, in_thread=False),
    "waits in the loop, in SQLite": partial(block, wait_for_a_lock, in_thread=False),
    "holds the log": partial(block, hold_the_log, in_thread=False),
}


def build(deps: Deps) -> Graph:
    """The agent as AGENTS finds it."""
    graph = StateGraph(MessagesState)
    graph.add_node("answer", KINDS[os.environ[KIND]]())
    graph.set_entry_point("answer")
    return cast(Graph, graph.compile(checkpointer=deps.checkpointer))


def hasten() -> None:
    """Has a worker lose its patience sooner."""
    stop.STOP_S, run.CANCEL_S = 1.5, 0.3


def _folder() -> Path:
    return Path(os.environ[FOLDER])


def _at_work() -> bool:
    """Notes that it is, and answers whether it may go."""
    (_folder() / "at_work").touch()
    return (_folder() / "free").exists()
