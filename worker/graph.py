"""An agent's graph and its stream of parts, given types that LangGraph leaves unknown."""

# LangGraph's and deepagents' own annotations are unknown to a strict reader; only this file,
# state.py and the two overrides in llm.py relax the check.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.graph.state import CompiledStateGraph

__all__ = [
    "CompiledGraph",
    "Graph",
    "Model",
    "Namespace",
    "Part",
    "Saver",
    "new_messages",
    "stream_parts",
]

CompiledGraph = CompiledStateGraph
Graph = CompiledStateGraph[Any, Any, Any, Any]
Saver = BaseCheckpointSaver[Any]
Model = BaseChatModel

Namespace = tuple[str, ...]
"""Where in the graph: empty for the agent itself, a step for each level of sub-agents."""

Part = tuple[Namespace, str, Any]
"""Namespace, stream mode, and what that mode yields."""


async def stream_parts(
    graph: Graph, given: dict[str, Any] | None, config: RunnableConfig
) -> AsyncGenerator[Part]:
    """Runs the graph on an input and yields the parts of its stream as they come.

    On none it goes on from what its thread holds.
    """
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


def new_messages(update: dict[str, Any]) -> Iterator[BaseMessage]:
    """The messages that a step added; a history that it wrote anew is no news."""
    for node in update.values():
        # A node that runs several tasks at once writes once for each.
        for written in cast(list[Any], node if isinstance(node, list) else [node]):
            messages = _messages(written)
            if not any(message.id == REMOVE_ALL_MESSAGES for message in messages):
                yield from messages


def _messages(written: Any) -> list[BaseMessage]:
    if not isinstance(written, dict):
        return []
    messages = cast(dict[str, Any], written).get("messages")
    several = cast(list[Any], messages if isinstance(messages, list) else [messages])
    return [message for message in several if isinstance(message, BaseMessage)]
