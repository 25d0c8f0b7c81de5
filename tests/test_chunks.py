"""Every chunk on the wire: its exact JSON, and the same value back."""

import json
from typing import Any, get_args

import msgspec
import pytest

from shared import chunks
from shared.chunks import (
    Cancelled,
    CancelSummary,
    Chunk,
    Done,
    Error,
    ErrorSummary,
    Place,
    Queued,
    Source,
    Summary,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
    ToolUse,
    Usage,
)
from shared.usage import CallUsage, TurnUsage

CALL_USAGE: dict[str, Any] = {
    "call_index": 1,
    "input_tokens": 10,
    "output_tokens": None,
    "cache_read": 0,
    "prefill_tps": None,
    "decode_tps": 12.5,
    "prompt_ms": None,
    "predicted_ms": None,
    "n_ctx": None,
    "context_pct": None,
    "partial": False,
    "agent": [],
}
TURN_USAGE: dict[str, Any] = {
    "calls": [CALL_USAGE],
    "model_calls": 2,
    "prompt_tokens_total": 10,
    "cache_read_total": 0,
    "completion_tokens_total": None,
    "context_start": None,
    "context_end": None,
    "context_peak": None,
    "compacted": False,
}
SUMMARY: dict[str, Any] = {
    "elapsed_s": 2.5,
    "queued_s": 0.5,
    "tool_calls": 0,
    "model_calls": 0,
    "finish_reason": None,
    "chars": 0,
    "truncated": False,
    "run_id": None,
    "trace_url": None,
    "usage": TURN_USAGE,
    "context_tokens": None,
}

call_usage = CallUsage(call_index=1, input_tokens=10, cache_read=0, decode_tps=12.5)
turn_usage = TurnUsage(
    calls=[call_usage], model_calls=2, prompt_tokens_total=10, cache_read_total=0
)

TABLE: list[tuple[Chunk, dict[str, Any]]] = [
    (
        Queued(turn_id="t", metadata=Place(position=3)),
        {"type": "queued", "metadata": {"position": 3, "eta_s": None}},
    ),
    (
        Text(turn_id="t", content="Hi", metadata=Source("m")),
        {"type": "text", "content": "Hi", "metadata": {"message_id": "m", "agent": []}},
    ),
    (
        ToolUse(
            turn_id="t",
            content="ls",
            metadata=ToolCall(call_id="c", name="ls", args={"path": None}, agent=["helper"]),
        ),
        {
            "type": "tool_use",
            "content": "ls",
            "metadata": {"call_id": "c", "name": "ls", "args": {"path": None}, "agent": ["helper"]},
        },
    ),
    (
        ToolResult(
            turn_id="t",
            content="etc",
            metadata=ToolOutcome(call_id="c", name="ls", status="api_error", truncated=True),
        ),
        {
            "type": "tool_result",
            "content": "etc",
            "metadata": {
                "call_id": "c",
                "name": "ls",
                "status": "api_error",
                "truncated": True,
                "agent": [],
                "elapsed_s": None,
            },
        },
    ),
    (
        Usage(turn_id="t", metadata=call_usage),
        {"type": "usage", "metadata": CALL_USAGE},
    ),
    (
        Done(turn_id="t", metadata=Summary(elapsed_s=2.5, queued_s=0.5, usage=turn_usage)),
        {"type": "done", "completed": True, "metadata": SUMMARY},
    ),
    (
        Error(
            turn_id="t",
            content="It failed.",
            metadata=ErrorSummary(elapsed_s=2.5, queued_s=0.5, usage=turn_usage, code="agent"),
        ),
        {
            "type": "error",
            "content": "It failed.",
            "completed": True,
            "metadata": SUMMARY | {"rolled_back_messages": None, "code": "agent"},
        },
    ),
    (
        Cancelled(
            turn_id="t",
            metadata=CancelSummary(
                elapsed_s=2.5, queued_s=0.5, usage=turn_usage, rolled_back_messages=3
            ),
        ),
        {
            "type": "cancelled",
            "completed": True,
            "metadata": SUMMARY | {"rolled_back_messages": 3},
        },
    ),
]

HOSTILE = [
    *("\r", "a\rb\r\nc\n\n", "\u2028\u2029", "\x00", "\u0085", "data: x\n\n", '"}\\', " ", ""),
    *("\U0001f600", "\U0001f469\u200d\U0001f467"),
]


def test_the_table_knows_every_chunk() -> None:
    assert {type(chunk) for chunk, _ in TABLE} == set(get_args(Chunk))


@pytest.mark.parametrize(("chunk", "sent"), TABLE, ids=lambda row: type(row).__name__)
def test_a_chunk_is_exactly_this_json_and_comes_back_equal(
    chunk: Chunk, sent: dict[str, Any]
) -> None:
    data = chunks.frame(7, chunks.encode(chunk))
    usual = {"seq": 7, "turn_id": "t", "content": "", "completed": False}
    assert json.loads(data) == usual | sent
    assert next(iter(json.loads(data))) == "seq"
    assert chunks.parse(data) == (7, chunk)
    assert chunks.type_of(chunk) == sent["type"]


@pytest.mark.parametrize("chunk", [chunk for chunk, _ in TABLE], ids=chunks.type_of)
def test_only_terminal_chunks_complete_a_turn(chunk: Chunk) -> None:
    assert chunk.completed == (chunks.type_of(chunk) in chunks.TERMINAL_TYPES)


@pytest.mark.parametrize("content", HOSTILE)
def test_hostile_text_comes_back_equal(content: str) -> None:
    source = Source(content, [content])
    chunk = Text(turn_id=content, content=content, metadata=source)
    assert chunks.parse(chunks.frame(1, chunks.encode(chunk))) == (1, chunk)


def test_a_surrogate_pair_in_json_is_one_character() -> None:
    body = chunks.encode(Text(turn_id="t", content="@", metadata=Source("m")))
    _, chunk = chunks.parse(chunks.frame(1, body.replace(b"@", rb"\ud83d\ude00")))
    assert chunk.content == "\U0001f600"


def test_the_arguments_of_a_tool_keep_numbers_of_any_size() -> None:
    call = ToolCall(call_id="c", name="n", args={"big": 2**70, "deep": [{"a": [1.5, True]}]})
    chunk = ToolUse(turn_id="t", metadata=call)
    assert chunks.parse(chunks.frame(1, chunks.encode(chunk))) == (1, chunk)


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"[]",
        b"{}",
        b"not json",
        b'{"seq":1}',
        b'{"seq":1,"turn_id":"t","type":"unheard_of","metadata":{}}',
        b'{"seq":1,"turn_id":"t","type":"text","content":"no metadata"}',
        b'{"seq":"1","turn_id":"t","type":"queued","metadata":{"position":1}}',
        b'{"turn_id":"t","type":"queued","metadata":{"position":1}}',
        b'{"seq":1,"turn_id":"\xff","type":"queued","metadata":{"position":1}}',
    ],
)
def test_what_is_no_chunk_is_refused(garbage: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        chunks.parse(garbage)
