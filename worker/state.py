"""A thread's state read from its checkpoints, with LangGraph's private means.

`aget_state` would read all channels through the whole history, and sealing has no public name.

What is read runs other people's code: reducers, and types of their own. These are known to the copy
of the saver that LangGraph has made for the graph, and to no other: through another one they would
come back as plain dicts, and be stored so.
"""

# LangGraph's own annotations are unknown to a strict reader, here as in graph.py.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

import json
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]
from langgraph.pregel._checkpoint import achannels_from_checkpoint

from worker.checkpoints import TurnSaver
from worker.graph import Graph

MESSAGES = "messages"
COUNTERS = "counters_since_delta_snapshot"


class StateUnreadable(Exception):
    """The agent's own code failed on its own state."""


async def count_messages(
    graph: Graph,
    thread_id: str,
    checkpoint_id: str = "",
    pending: Collection[tuple[str, str]] | None = None,
) -> int:
    """How many messages a checkpoint has (the latest by default), with its pending writes.

    `pending`: only those of these tasks and channels. Raises StateUnreadable.
    """
    return len(await read_messages(graph, thread_id, checkpoint_id, pending))


async def read_messages(
    graph: Graph,
    thread_id: str,
    checkpoint_id: str = "",
    pending: Collection[tuple[str, str]] | None = None,
) -> list[Any]:
    """Those messages, or what an agent of its own kind keeps there; raises StateUnreadable."""
    saver = graph.checkpointer
    if not isinstance(saver, TurnSaver) or MESSAGES not in graph.channels:
        return []
    place = {"thread_id": thread_id, "checkpoint_ns": ""}
    if checkpoint_id:
        place["checkpoint_id"] = checkpoint_id
    with _their_code():
        saved = await saver.aget_tuple({"configurable": place})
        if saved is None:
            return []
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
        return list(channels[MESSAGES].get()) if channels[MESSAGES].is_available() else []


def is_state(channel: str) -> bool:
    """The channel is an agent's own, and not one of those by which LangGraph finds its way."""
    return ":" not in channel and not channel.startswith("__")


class SealedHead(NamedTuple):
    """A thread's last checkpoint, which needs no other; the columns of its row."""

    checkpoint_id: str
    type: str
    checkpoint: bytes
    metadata: bytes


async def seal_head(graph: Graph, thread_id: str) -> SealedHead | None:
    """The thread's last checkpoint with the whole value of each channel that is kept as deltas.

    None when there is nothing to seal, or something is pending: that needs what came before.
    Raises StateUnreadable.
    """
    saver = graph.checkpointer
    if not isinstance(saver, TurnSaver):
        return None
    with _their_code():
        saved = await saver.aget_tuple(
            {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        )
        if saved is None or saved.pending_writes:
            return None
        written = saved.checkpoint["channel_versions"]
        if any(is_state(name) and name not in graph.channels for name in written):
            return None  # it is another agent's, whose deltas this one does not know
        deltas = {
            name: channel
            for name, channel in graph.channels.items()
            if isinstance(channel, DeltaChannel) and name in written
        }
        channels, _ = await achannels_from_checkpoint(
            deltas, saved.checkpoint, saver=saver, config=saved.config
        )
        whole = {
            name: _DeltaSnapshot(channel.get())
            for name, channel in channels.items()
            if channel.is_available()
        }
        values = {**saved.checkpoint["channel_values"], **whole}
        kind, checkpoint = saver.serde.dumps_typed({**saved.checkpoint, "channel_values": values})
    metadata = {name: value for name, value in saved.metadata.items() if name != COUNTERS}
    return SealedHead(
        saved.checkpoint["id"],
        kind,
        checkpoint,
        json.dumps(metadata, ensure_ascii=False).encode("utf-8", "ignore"),
    )


def decode(graph: Graph, kind: str, value: bytes) -> Any:
    """A stored value as the agent knows it; raises StateUnreadable."""
    saver = graph.checkpointer
    if not isinstance(saver, TurnSaver):
        raise StateUnreadable("The agent does not keep its state here.")
    with _their_code():
        return saver.serde.loads_typed((kind, value))


@contextmanager
def _their_code() -> Generator[None]:
    try:
        yield
    except Exception as error:  # it may fail in any way, and the turn's end must not
        raise StateUnreadable(type(error).__name__) from error
