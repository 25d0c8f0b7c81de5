"""What LangGraph streams, and the chunks that become of it."""

from collections.abc import Iterable
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langgraph.graph.message import REMOVE_ALL_MESSAGES  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import Overwrite
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
    Usage,
)
from shared.usage import CallUsage
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


TABLE: dict[str, tuple[list[Part], list[Chunk]]] = {
    "text as it comes": (
        [heard(piece("Hel")), heard(piece("lo")), stepped(AIMessage("Hello", id="m"))],
        [say("Hel"), say("lo")],
    ),
    "text out of content blocks": (
        [heard(piece([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": "x"}]))],
        [say("a")],
    ),
    "no text, no chunk": ([heard(piece("")), heard(piece([]))], []),
    "what the person and the system say is not told": (
        [heard(HumanMessage("hi", id="h")), heard(SystemMessage("be", id="s"))],
        [],
    ),
    "a tool call once it is whole": (
        [
            heard(piece("", tool_call_chunks=[
                {"index": 0, "id": "c1", "name": "ls", "args": '{"pa', "type": "tool_call_chunk"}
            ])),
            heard(piece("", tool_call_chunks=[
                {"index": 0, "id": None, "name": None, "args": 'th"', "type": "tool_call_chunk"}
            ])),
            stepped(calling(LS)),
        ],
        [use(LS)],
    ),
    "parallel calls, answered in another order": (
        [stepped(calling(LS, CAT)), stepped(result("b", "c2", name="cat")), stepped(result("a"))],
        [use(LS), use(CAT), outcome("b", CAT), outcome("a")],
    ),
    "a tool message among the messages is told by its step": (
        [stepped(calling(LS)), heard(result("a")), stepped(result("a"))],
        [use(LS), outcome("a")],
    ),
    "a result out of content blocks": (
        [stepped(calling(LS)), stepped(result([{"type": "text", "text": "a"}, "b"]))],
        [use(LS), outcome("ab")],
    ),
    "a result without a name has that of its call": (
        [stepped(calling(LS)), stepped(result("a", name=None))],
        [use(LS), outcome("a")],
    ),
    "results of a node that runs several tools at once": (
        [
            stepped(calling(LS, CAT)),
            wrote([{"messages": [result("a")]}, {"messages": [result("b", "c2", name="cat")]}]),
        ],
        [use(LS), use(CAT), outcome("a"), outcome("b", CAT)],
    ),
    "a call and a result that come again": (
        [stepped(calling(LS)), stepped(calling(LS)), stepped(result("a")), stepped(result("a"))],
        [use(LS), outcome("a")],
    ),
    "a result without a call": ([stepped(result("a", "unheard of"))], []),
    "a history written anew is no news": (
        [
            stepped(calling(LS)),
            wrote({"messages": Overwrite([calling(CAT), result("b", "c2", name="cat")])}),
        ],
        [use(LS)],
    ),
    "a history removed and written anew is no news either": (
        [
            stepped(calling(LS)),
            stepped(
                *(RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("hi")),
                *(calling(CAT), result("b", "c2", name="cat"), result("a")),
            ),
        ],
        [use(LS)],
    ),
    "one message alone": ([wrote({"messages": calling(LS)})], [use(LS)]),
    "state without messages": (
        [wrote({"todos": ["x"]}), wrote(None), wrote({"messages": None}), wrote((1, 2))],
        [],
    ),
    "what an agent writes to the stream itself": ([((), "custom", {"x": 1})], []),
    "a sub-agent by its name": (
        [
            heard(piece("a"), HELPER, lc_agent_name="helper"),
            stepped(calling(LS), namespace=HELPER),
        ],
        [say("a", ["helper"]), use(LS, ["helper"])],
    ),
    "a sub-agent of a sub-agent": (
        [
            heard(piece("a"), HELPER, lc_agent_name="helper"),
            heard(piece("b"), (*HELPER, "tools:2"), lc_agent_name="deeper"),
        ],
        [say("a", ["helper"]), say("b", ["helper", "deeper"])],
    ),
    "a graph without a name is called by its node": (
        [heard(piece("a"), ("research:1", "model:2"))],
        [say("a", ["research", "model"])],
    ),
    "the main agent's name is not part of the path": (
        [heard(piece("a"), lc_agent_name="main")],
        [say("a")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "expected"), TABLE.values(), ids=TABLE.keys())
def test_parts_of_the_stream_become_chunks(parts: list[Part], expected: list[Chunk]) -> None:
    assert translate(*parts) == expected


@pytest.mark.parametrize(
    ("content", "status", "expected"),
    [
        ("fine", "success", "ok"),
        ("TOOL_VALIDATION_ERROR: no path", "success", "validation_error"),
        ("TOOL_API_ERROR: 503", "success", "api_error"),
        ("went wrong", "error", "error"),
        ("TOOL_API_ERROR: 503", "error", "api_error"),
        ("He said TOOL_API_ERROR: 503", "success", "ok"),
        ("", "success", "ok"),
    ],
)
def test_how_a_tool_call_ended(content: str, status: str, expected: ToolStatus) -> None:
    _, chunk = translate(stepped(calling(LS)), stepped(result(content, status=status)))
    assert chunk == outcome(content, status=expected)


@pytest.mark.parametrize(
    ("content", "preview", "truncated"), [("1234", "1234", False), ("12345", "1234", True)]
)
def test_a_long_result_is_cut(content: str, preview: str, truncated: bool) -> None:
    _, chunk = translate(stepped(calling(LS)), stepped(result(content)), preview_chars=4)
    assert chunk == outcome(preview, truncated=truncated)


def test_the_figures_of_each_call_are_told_once() -> None:
    timings = {"prompt_ms": 5.0, "predicted_per_second": 40.0}
    chunks = translate(
        heard(piece("a")),
        heard(piece("", usage_metadata=COUNTS, response_metadata={"timings": timings})),
        stepped(AIMessage("a", id="m", usage_metadata=COUNTS)),
        heard(AIMessageChunk(content="", id="another", usage_metadata=COUNTS)),
    )
    first = CallUsage(
        call_index=1, input_tokens=10, output_tokens=2, prompt_ms=5.0, decode_tps=40.0
    )
    second = CallUsage(call_index=2, input_tokens=10, output_tokens=2)
    assert chunks == [
        say("a"),
        Usage(turn_id="t", metadata=first),
        Usage(turn_id="t", metadata=second),
    ]


def test_a_turn_is_counted_as_it_is_told() -> None:
    translator = Translator("t", 2000)
    stop = {"finish_reason": "stop"}
    parts = [
        heard(piece("four", usage_metadata=COUNTS, response_metadata={"finish_reason": "length"})),
        stepped(calling(LS, CAT)),
        heard(AIMessageChunk(content="not counted", id="h", response_metadata=stop), HELPER),
        heard(AIMessageChunk(content="cut short", id="i"), HELPER),
    ]
    assert len(list(told(translator, parts))) == 6
    summary = translator.tally.sum_up(elapsed_s=0, queued_s=0, run_id=None)
    assert (summary.chars, summary.finish_reason, summary.truncated) == (4, "length", True)
    assert (summary.tool_calls, summary.model_calls, len(summary.usage.calls)) == (2, 3, 1)


def test_what_no_encoding_can_hold_is_told_as_far_as_it_can_be() -> None:
    # A file's name of stray bytes, as Python reads it from the system.
    name = b"caf\xe9".decode(errors="surrogateescape")
    _, chunk = translate(stepped(calling(LS)), stepped(result(name)))
    assert chunk.content.encode().startswith(b"caf")
