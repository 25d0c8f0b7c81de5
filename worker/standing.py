"""What the database holds of a turn that is not over: the messages that its steps have written.

Those of pending writes and of sub-agents too: LangGraph goes on from all of them.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from aiosqlite import Connection
from langchain_core.messages import BaseMessage

from worker.checkpoints import TurnSaver
from worker.fence import Fence, fenced_pending
from worker.graph import Graph, Namespace, new_messages
from worker.state import MESSAGES, StateUnreadable, decode, read_messages
from worker.transaction import look

# In the order in which they were written; SQLite numbers rows upwards. What a graph was given is
# not what it said: the first step, on a checkpoint of the input, takes that over.
WRITTEN = f"""
SELECT checkpoint_ns, writes.type, value,
       json_extract(CAST(metadata AS TEXT), '$.source') = 'input'
FROM writes JOIN checkpoints USING (thread_id, checkpoint_ns, checkpoint_id)
WHERE thread_id = ? AND channel = '{MESSAGES}'
  AND (checkpoint_ns, checkpoint_id, task_id, idx) NOT IN
      (SELECT checkpoint_ns, checkpoint_id, task_id, idx FROM fenced_writes WHERE thread_id = ?)
ORDER BY writes.rowid
"""
AGENTS = """
SELECT checkpoint_ns, metadata FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns <> '' AND (checkpoint_ns, checkpoint_id) NOT IN
      (SELECT checkpoint_ns, checkpoint_id FROM fenced_checkpoints WHERE thread_id = ?)
"""

log = logging.getLogger(__name__)


class Said(NamedTuple):
    """A message, and where in the graph it was written."""

    namespace: Namespace
    message: BaseMessage


class Standing(NamedTuple):
    """`agents`: the names of sub-agents by where they are."""

    said: list[Said]
    agents: dict[Namespace, str]


class Rows(NamedTuple):
    """What `Standing` is made of; `written`: namespace, type and value of each write, and whether
    the graph was given it.
    """

    written: list[tuple[str, str, bytes, bool]]
    agents: list[tuple[str, bytes]]


NOTHING = Standing([], {})

NOWHERE = "none"
"""No checkpoint has this id."""


async def find_standing(saver: TurnSaver, graph: Graph, fence: Fence) -> Standing:
    """What the fenced turn has written so far; nothing is under way when it is read."""
    rows = await look(saver, lambda connection: read_rows(connection, fence))
    pending = await look(saver, lambda connection: fenced_pending(connection, fence))
    try:
        before = await read_messages(graph, fence.thread_id, fence.head or NOWHERE, pending)
    except StateUnreadable as error:  # there may be none that are messages
        log.warning("What thread %s had before is not known: %s", fence.thread_id, error)
        before = []
    return parse_rows(graph, rows, [str(getattr(message, "id", "")) for message in before])


async def read_rows(connection: Connection, fence: Fence) -> Rows:
    """What was written since the fence was raised."""
    twice = (fence.thread_id, fence.thread_id)
    written = await connection.execute_fetchall(WRITTEN, twice)
    agents = await connection.execute_fetchall(AGENTS, twice)
    return Rows([tuple(row) for row in written], [tuple(row) for row in agents])


def parse_rows(graph: Graph, rows: Rows, before: Collection[str]) -> Standing:
    """The messages, each once; what cannot be read does not stand.

    `before`: ids of those that the thread had before the turn, which a step may write again.
    """
    said: list[Said] = []
    seen = set(before)
    for namespace, kind, value, given in rows.written:
        new = [message for message in _read(graph, kind, value) if message.id not in seen]
        seen |= {message.id for message in new if message.id}
        if not given:
            said += [Said(_path(namespace), message) for message in new]
    return Standing(said, dict(_names(rows.agents)))


def _path(namespace: str) -> Namespace:
    return tuple(namespace.split("|")) if namespace else ()


def _read(graph: Graph, kind: str, value: bytes) -> list[BaseMessage]:
    try:
        written = decode(graph, kind, value)
    except StateUnreadable as error:
        log.warning("A message cannot be read: %s", error)
        return []
    return list(new_messages({"": {MESSAGES: written}}))


def _names(rows: Iterable[tuple[str, bytes]]) -> Iterable[tuple[Namespace, str]]:
    for namespace, text in rows:
        metadata: Mapping[str, Any] = json.loads(text)
        if name := metadata.get("lc_agent_name"):
            yield _path(namespace), str(name)
