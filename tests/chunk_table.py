"""Every type of chunk, and the exact JSON that it is on the wire."""

from typing import Any

from shared.chunks import (
    Cancelled,
    Chunk,
    Done,
    Error,
    Interruption,
    Place,
    Queued,
    Rewind,
    Source,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
    ToolUse,
    Usage,
)
from shared.summary import CancelSummary, ErrorSummary, Summary
from shared.usage import CallUsage, TurnUsage

CALL_USAGE: dict[str, Any] = {
    "call_index": 1,
    "message_id": "m",
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

call_usage = CallUsage(call_index=1, message_id="m", input_tokens=10, cache_read=0, decode_tps=12.5)
turn_usage = TurnUsage(
    calls=[call_usage], model_calls=2, prompt_tokens_total=10, cache_read_total=0
)

USUAL: dict[str, Any] = {"seq": 7, "turn_id": "t", "content": "", "completed": False}

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
        Rewind(turn_id="t", metadata=Interruption(to_seq=3, reason="worker_stopped")),
        {"type": "rewind", "metadata": {"to_seq": 3, "reason": "worker_stopped"}},
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
"""A chunk and how its JSON differs from the usual."""
