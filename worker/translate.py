"""LangGraph's stream as chunks. Knows messages and tool calls, never a node or an agent by name."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

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
from worker.graph import Namespace, Part, new_messages
from worker.tally import Tally, read_usage

VALIDATION_ERROR = "TOOL_VALIDATION_ERROR:"
API_ERROR = "TOOL_API_ERROR:"


class Called(NamedTuple):
    """A tool call that was told. `at`: seconds of the monotonic clock; None: in an earlier run."""

    name: str
    at: float | None


def _now_ms() -> int:
    return round(1000 * time.time())


class Translator:
    """Translates one turn and keeps its tally; `clock`: milliseconds since the epoch."""

    def __init__(
        self, turn_id: str, preview_chars: int, clock: Callable[[], int] = _now_ms
    ) -> None:
        self.tally = Tally()
        self.turn_id = turn_id
        self._preview_chars = preview_chars
        self._clock = clock
        self._agent_names: dict[Namespace, str] = {}
        self._calls: dict[str, Called] = {}
        self._answered: set[str] = set()
        self._told: set[str] = set()

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
                yield from self._step(message, self._agent(namespace), time.monotonic())

    def begin_anew(self) -> "Translator":
        """One for the same turn that has told nothing."""
        return Translator(self.turn_id, self._preview_chars, self._clock)

    def learn_agents(self, names: Mapping[Namespace, str]) -> None:
        """Takes the names of sub-agents from an earlier run."""
        self._agent_names |= names

    def recall(self, told: Iterable[Chunk]) -> None:
        """Goes on from whole messages, calls and results that were told in an earlier run."""
        for chunk in told:
            match chunk:
                case Text(metadata=source):
                    self._told.add(source.message_id)
                    self.tally.add_text(chunk.content, source.agent)
                case Usage(metadata=usage):
                    self.tally.add(usage)
                case ToolUse(metadata=call):
                    self._count_call(call.call_id, Called(call.name, None))
                case ToolResult(metadata=outcome):
                    self._answered.add(outcome.call_id)
                case _:
                    pass

    def retell(self, namespace: Namespace, message: BaseMessage) -> Iterator[Chunk]:
        """The chunks of a whole message, less those that were told."""
        agent = self._agent(namespace)
        if isinstance(message, AIMessage):
            yield from self._speak(message, agent)
        yield from self._step(message, agent, None)

    def _learn_agent(self, namespace: Namespace, metadata: dict[str, Any]) -> None:
        if namespace and (name := metadata.get("lc_agent_name")):
            self._agent_names[namespace] = name

    def _agent(self, namespace: Namespace) -> Agent:
        """The names along the path; a graph without one is called by its node."""
        levels = [namespace[: depth + 1] for depth in range(len(namespace))]
        return [self._agent_names.get(level, level[-1].partition(":")[0]) for level in levels]

    def _speak(self, message: AIMessage, agent: Agent) -> Iterator[Chunk]:
        message_id = message.id or ""
        call_index = self.tally.call_index(message_id)
        # LangChain's text is a subclass of str that nothing but str can encode.
        if message_id not in self._told and (text := mend(str(message.text))):
            self.tally.add_text(text, agent)
            yield Text(turn_id=self.turn_id, content=text, metadata=Source(message_id, agent))
        if reason := message.response_metadata.get("finish_reason"):
            self.tally.finish(reason, agent)
        if message.usage_metadata and not self.tally.has_usage(message_id):
            usage = read_usage(message, call_index, agent)
            self.tally.add(usage)
            yield Usage(turn_id=self.turn_id, metadata=usage)

    def _step(self, message: BaseMessage, agent: Agent, now: float | None) -> Iterator[Chunk]:
        match message:
            case AIMessage():
                self.tally.note(message.id, agent, self._clock())
                for call in message.tool_calls:
                    called = Called(call["name"], now)
                    yield from self._call(call["id"] or "", called, call["args"], agent)
            case ToolMessage():
                self.tally.note(message.tool_call_id, agent, self._clock())
                yield from self._result(message, agent)
            case _:
                pass

    def _call(
        self, call_id: str, called: Called, args: dict[str, Any], agent: Agent
    ) -> Iterator[ToolUse]:
        # A middleware may write history again; each call is told once.
        if call_id in self._calls:
            return
        self._count_call(call_id, called)
        name = called.name
        metadata = ToolCall(call_id=call_id, name=name, args=mend_json(args), agent=agent)
        yield ToolUse(turn_id=self.turn_id, content=name, metadata=metadata)

    def _count_call(self, call_id: str, called: Called) -> None:
        self._calls[call_id] = called
        self.tally.tool_calls += 1

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
            elapsed_s=None if called.at is None else round(time.monotonic() - called.at, 3),
        )
        preview = content[: self._preview_chars]
        yield ToolResult(turn_id=self.turn_id, content=preview, metadata=outcome)


def classify(status: str, content: str) -> ToolStatus:
    """How a tool call ended: by the message's own status, else by the prefixes tools may use."""
    if content.startswith(VALIDATION_ERROR):
        return "validation_error"
    if content.startswith(API_ERROR):
        return "api_error"
    return "error" if status == "error" else "ok"
