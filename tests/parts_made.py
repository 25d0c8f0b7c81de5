"""Parts of LangGraph's stream, and the chunks that are expected of them."""

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from msgspec.structs import replace

from shared.chunks import (
    Agent,
    Chunk,
    Source,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
    ToolStatus,
    ToolUse,
)
from worker.graph import Namespace, Part
from worker.translate import Translator

HELPER: Namespace = ("tools:1",)
COUNTS = UsageMetadata(input_tokens=10, output_tokens=2, total_tokens=12)
LS: dict[str, Any] = {"id": "c1", "name": "ls", "args": {"path": "/"}}
CAT: dict[str, Any] = {"id": "c2", "name": "cat", "args": {}}


def heard(message: BaseMessage, namespace: Namespace = (), **metadata: Any) -> Part:
    """A message, or a piece of one, as it comes."""
    return (namespace, "messages", (message, metadata))


def stepped(*messages: BaseMessage, namespace: Namespace = ()) -> Part:
    """A node that has added messages."""
    return wrote({"messages": list(messages)}, namespace)


def wrote(written: object, namespace: Namespace = ()) -> Part:
    """A node that has written to the state."""
    return (namespace, "updates", {"some node": written})


def piece(content: str | list[Any], **fields: Any) -> AIMessageChunk:
    return AIMessageChunk(content=content, id="m", **fields)


def calling(*calls: dict[str, Any]) -> AIMessage:
    return AIMessage(content="", id="m", tool_calls=list(calls))


def result(content: str | list[Any], call_id: str = "c1", **fields: Any) -> ToolMessage:
    return ToolMessage(content=content, tool_call_id=call_id, **{"name": "ls", **fields})


def say(content: str, agent: Agent | None = None) -> Text:
    return Text(turn_id="t", content=content, metadata=Source("m", agent or []))


def use(call: dict[str, Any], agent: Agent | None = None) -> ToolUse:
    metadata = ToolCall(call_id=call["id"], name=call["name"], args=call["args"], agent=agent or [])
    return ToolUse(turn_id="t", content=call["name"], metadata=metadata)


def outcome(
    content: str, call: dict[str, Any] = LS, status: ToolStatus = "ok", truncated: bool = False
) -> ToolResult:
    """Without its time."""
    metadata = ToolOutcome(
        call_id=call["id"], name=call["name"], status=status, truncated=truncated
    )
    return ToolResult(turn_id="t", content=content, metadata=metadata)


def translate(*parts: Part, preview_chars: int = 2000) -> list[Chunk]:
    return list(told(Translator("t", preview_chars), parts))


def told(translator: Translator, parts: Iterable[Part]) -> Iterable[Chunk]:
    """The chunks, with the time of each tool result taken out once it is seen to be sane."""
    for part in parts:
        for chunk in translator.translate(part):
            if isinstance(chunk, ToolResult):
                assert 0 <= (chunk.metadata.elapsed_s or 0.0) < 5
                chunk = replace(chunk, metadata=replace(chunk.metadata, elapsed_s=None))
            yield chunk
