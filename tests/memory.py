"""Graphs that remember, what a turn puts, and what the database holds of it."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.graph import MessagesState, StateGraph  # pyright: ignore[reportMissingTypeStubs]

from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.gate import CURRENT_TURN, OpenTurn
from worker.graph import Graph
from worker.memory import Memory

Node = Callable[[MessagesState], Awaitable[dict[str, Any]]]
Rows = dict[str, list[tuple[Any, ...]]]

OURS = ("open_turns", "fenced_checkpoints", "fenced_writes", "ledger", "outbox", "numbering")


def graph_of(node: Node, saver: TurnSaver, *, again: bool = False) -> Graph:
    """A graph of one node; `again`: it never gets beyond it."""
    graph: Any = StateGraph(MessagesState)
    graph.add_node("answer", node)
    graph.set_entry_point("answer")
    if again:
        graph.add_edge("answer", "answer")
    return graph.compile(checkpointer=saver)


def chain_of(saver: TurnSaver | None, *nodes: Node | Graph) -> Graph:
    """A graph of one step after the other."""
    graph: Any = StateGraph(MessagesState)
    names = [f"step-{number}" for number, _ in enumerate(nodes, 1)]
    for name, node in zip(names, nodes, strict=True):
        graph.add_node(name, node)
    graph.set_entry_point(names[0])
    for before, after in pairwise(names):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)


async def rows(saver: TurnSaver, *tables: str) -> Rows:
    """Every row of the tables (LangGraph's two by default), in order."""
    found: Rows = {}
    for table in tables or ("checkpoints", "writes"):
        fetched = await saver.conn.execute_fetchall(f"SELECT * FROM {table}")
        found[table] = sorted((tuple(row) for row in fetched), key=repr)
    return found


def place(
    thread_id: str = "thread", namespace: str = "", checkpoint_id: str = ""
) -> RunnableConfig:
    """Where a put goes."""
    found: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": namespace}
    if checkpoint_id:
        found["checkpoint_id"] = checkpoint_id
    return {"configurable": found}


async def untold(memory: Memory) -> list[Ending]:
    """The ends that Redis is not known to know, of a memory that keeps no others."""
    await memory.forget_told()
    return await memory.untold()


@contextmanager
def working_for(saver: TurnSaver, turn_id: str) -> Generator[None]:
    """Does as a task of this turn does: of the open one, if it is that; empty: of none."""
    opened = saver.gate.turn
    if not opened or opened.turn_id != turn_id:
        opened = OpenTurn(turn_id, "thread", "") if turn_id else None
    token = CURRENT_TURN.set(opened)
    try:
        yield
    finally:
        CURRENT_TURN.reset(token)


async def put(
    saver: TurnSaver,
    *,
    turn_id: str = "turn",
    thread_id: str = "thread",
    namespace: str = "",
    checkpoint: Checkpoint | None = None,
) -> str:
    """Puts a new checkpoint as a turn does, with a write that is pending on it; answers its id."""
    new = checkpoint or empty_checkpoint()
    with working_for(saver, turn_id):
        config = await saver.aput(place(thread_id, namespace), new, {}, {})
        await saver.aput_writes(config, [("messages", "hello")], task_id="task")
    return new["id"]


async def write(saver: TurnSaver, checkpoint_id: str, channel: str, value: object) -> None:
    """Adds a write of the turn `turn` to a checkpoint."""
    with working_for(saver, "turn"):
        await saver.aput_writes(place(checkpoint_id=checkpoint_id), [(channel, value)], "task")
