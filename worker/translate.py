"""LangGraph's stream as chunks. Knows messages and tool calls, never a node or an agent by name."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from shared.characters import mend, mend_json
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
    Usage,
)
from worker.graph import REMOVE_ALL_MESSAGES, Namespace, Part
from worker.tally import Tally, read_usage

VALIDATION_ERROR = "TOOL_VALIDATION_ERROR:"
API_ERROR = "TOOL_API_ERROR:"


class Called(NamedTuple):
    """A tool call that was told. `at`: seconds of the monotonic clock."""

    name: str
    at: float


class Translator:
    """Translates one turn and keeps its tally."""

    def __init__(self, turn_id: str, preview_chars: int) -> None:
        self.tally = Tally()
        self._turn_id = turn_id
        self._preview_chars = preview_chars
        self._agent_names: dict[Namespace, str] = {}
        self._calls: dict[str, Called] = {}
        self._answered: set[str] = set()

    def translate(self, part: Part) -> Iterator[Chunk]:
        """The chunks that a part of the stream amounts to."""
        namespace, mode, data = part
        if mode == "messages":
            message, metadata = data
            self._learn_agent(namespace, metadata)
            if isinstance(message, AIMessage):
                yield from self._speak(message, self._agent(namespace))
        elif mode == "updates":
            for message in new_messages(data):
                yield from self._step(message, self._agent(namespace))

    def _learn_agent(self, namespace: Namespace, metadata: dict[str, Any]) -> None:
        if namespace and (name := metadata.get("lc_agent_name")):
            self._agent_names[namespace] = name

    def _agent(self, namespace: Namespace) -> Agent:
        """The names along the path; a graph without one is called by its node."""
        levels = [namespace[: depth + 1] for depth in range(len(namespace))]
        return [self._agent_names.get(level, level[-1].partition(":")[0]) for level in levels]

    def _speak(self, message: AIMessage, agent: Agent) -> Iterator[Chunk]:
        call_index = self.tally.call_index(message.id or "")
        # LangChain's text is a subclass of str that nothing but str can encode.
        if text := mend(str(message.text)):
            self.tally.add_text(text, agent)
            source = Source(message.id or "", agent)
            yield Text(turn_id=self._turn_id, content=text, metadata=source)
        if reason := message.response_metadata.get("finish_reason"):
            self.tally.finish(reason, agent)
        if message.usage_metadata:
            usage = read_usage(message, call_index, agent)
            self.tally.calls.append(usage)
            yield Usage(turn_id=self._turn_id, metadata=usage)

    def _step(self, message: BaseMessage, agent: Agent) -> Iterator[Chunk]:
        match message:
            case AIMessage():
                for call in message.tool_calls:
                    yield from self._call(call["id"] or "", call["name"], call["args"], agent)
            case ToolMessage():
                yield from self._result(message, agent)
            case _:
                pass

    def _call(
        self, call_id: str, name: str, args: dict[str, Any], agent: Agent
    ) -> Iterator[ToolUse]:
        # A middleware may write history again; each call is told once.
        if call_id in self._calls:
            return
        self._calls[call_id] = Called(name, time.monotonic())
        self.tally.tool_calls += 1
        metadata = ToolCall(call_id=call_id, name=name, args=mend_json(args), agent=agent)
        yield ToolUse(turn_id=self._turn_id, content=name, metadata=metadata)

    def _result(self, message: ToolMessage, agent: Agent) -> Iterator[ToolResult]:
        called = self._calls.get(message.tool_call_id)
        if called is None or message.tool_call_id in self._answered:
            return
        self._answered.add(message.tool_call_id)
        content = mend(str(message.text))
        outcome = ToolOutcome(
            call_id=message.tool_call_id,
            name=message.name or called.name,
            status=classify(message.status, content),
            truncated=len(content) > self._preview_chars,
            agent=agent,
            elapsed_s=round(time.monotonic() - called.at, 3),
        )
        preview = content[: self._preview_chars]
        yield ToolResult(turn_id=self._turn_id, content=preview, metadata=outcome)


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


def classify(status: str, content: str) -> ToolStatus:
    """How a tool call ended: by the message's own status, else by the prefixes tools may use."""
    if content.startswith(VALIDATION_ERROR):
        return "validation_error"
    if content.startswith(API_ERROR):
        return "api_error"
    return "error" if status == "error" else "ok"
