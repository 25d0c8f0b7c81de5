"""An agent's graph and its stream of parts, given types that LangGraph leaves unknown."""

# LangGraph's and deepagents' own annotations are unknown to a strict reader; only this file and
# the two overrides in llm.py relax the check.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel._checkpoint import achannels_from_checkpoint

__all__ = [
    "REMOVE_ALL_MESSAGES",
    "CompiledGraph",
    "Graph",
    "Model",
    "Namespace",
    "Part",
    "Saver",
    "count_messages",
    "stream_parts",
]

CompiledGraph = CompiledStateGraph
Graph = CompiledStateGraph[Any, Any, Any, Any]
Saver = BaseCheckpointSaver[Any]
Model = BaseChatModel

Namespace = tuple[str, ...]
"""Where in the graph: empty for the agent itself, a step for each level of sub-agents."""

MESSAGES = "messages"

Part = tuple[Namespace, str, Any]
"""Namespace, stream mode, and what that mode yields."""


async def stream_parts(
    graph: Graph, given: dict[str, Any], config: RunnableConfig
) -> AsyncGenerator[Part]:
    """Runs the graph on an input and yields the parts of its stream as they come."""
    stream = graph.astream(
        given,
        config,
        stream_mode=["messages", "updates", "custom"],
        subgraphs=True,
        durability="async",
    )
    # Closed here and now: left to the garbage collector, the model's stream would run on.
    async with aclosing(cast(AsyncGenerator[Part], stream)) as parts:
        async for part in parts:
            yield part


async def count_messages(
    graph: Graph,
    saver: Saver,
    thread_id: str,
    checkpoint_id: str = "",
    pending: Collection[tuple[str, str]] | None = None,
) -> int:
    """How many messages a checkpoint has (the latest by default), with its pending writes.

    `pending`: only those of these tasks and channels. Of the state only the messages are read,
    which `aget_state` would not do: LangGraph's private `achannels_from_checkpoint` can.
    """
    place = {"thread_id": thread_id, "checkpoint_ns": ""}
    if checkpoint_id:
        place["checkpoint_id"] = checkpoint_id
    saved = await saver.aget_tuple({"configurable": place})
    if saved is None or MESSAGES not in graph.channels:
        return 0
    specs = {MESSAGES: graph.channels[MESSAGES]}
    channels, _ = await achannels_from_checkpoint(
        specs, saved.checkpoint, saver=saver, config=saved.config
    )
    channels[MESSAGES].update(
        [
            written
            for task, channel, written in saved.pending_writes or []
            if channel == MESSAGES and (pending is None or (task, channel) in pending)
        ]
    )
    return len(channels[MESSAGES].get()) if channels[MESSAGES].is_available() else 0
