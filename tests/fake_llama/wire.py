"""The bodies and events of llama-server, as pure functions."""

import json
import random
import string
import time
from typing import Any

from tests.fake_llama.script import Body, Call

MODEL = "fake.gguf"
BUILD = "b0-unknown"
ROLE: Body = {"role": "assistant", "content": None}
PING = b":\n\n"
DONE = b"data: [DONE]\n\n"


def to_json(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
        errors="backslashreplace"
    )


def event(body: Body) -> bytes:
    return b"data: " + to_json(body) + b"\n\n"


def random_name() -> str:
    return "".join(random.choices(string.ascii_letters + string.digits, k=32))


def refused(status: int, error: Body) -> Body:
    return {"error": {"code": status, **error}}


def choice(delta: Body, finish_reason: str | None = None) -> Body:
    return {"finish_reason": finish_reason, "index": 0, "delta": delta}


def chunk(completion_id: str, choices: list[Body], **more: Body) -> Body:
    return {"choices": choices, **_origin(completion_id, "chat.completion.chunk"), **more}


def completion(completion_id: str, message: Body, finish_reason: str, call: Call) -> Body:
    """The whole answer of a call that asked for no stream."""
    return {
        "choices": [{"finish_reason": finish_reason, "index": 0, "message": message}],
        **_origin(completion_id, "chat.completion"),
        "usage": usage(call),
        "timings": timings(call),
    }


def message_of(deltas: list[Body]) -> Body:
    """Joins the deltas of an answer to the message they spell."""
    message: Body = {"role": "assistant", "content": _joined(deltas, "content")}
    if reasoning := _joined(deltas, "reasoning_content"):
        message["reasoning_content"] = reasoning
    if parts := [part for delta in deltas for part in delta.get("tool_calls", ())]:
        message["tool_calls"] = _joined_calls(parts)
    return message


def usage(call: Call) -> Body:
    """The reasoning is not split out of completion_tokens."""
    return {
        "completion_tokens": call.n_decoded,
        "prompt_tokens": call.n_prompt,
        "total_tokens": call.n_prompt + call.n_decoded,
        "prompt_tokens_details": {"cached_tokens": call.n_cached},
    }


def progress(call: Call) -> Body:
    """Counts the cached tokens as processed."""
    return {
        "total": call.n_prompt,
        "cache": call.n_cached,
        "processed": call.n_cached + call.n_processed,
        "time_ms": int(call.prompt_seconds * 1e3),
    }


def timings(call: Call) -> Body:
    """Decoding is timed from the first token, so its averages leave that one out."""
    return {
        "cache_n": call.n_cached,
        **_pace("prompt", call.n_processed, call.n_processed, call.prompt_seconds * 1e3),
        **_pace("predicted", call.n_decoded, call.n_decoded - 1, call.predicted_seconds * 1e3),
    }


def _pace(what: str, n: int, n_timed: int, ms: float) -> Body:
    measured = n_timed > 0 and ms > 0
    return {
        f"{what}_n": n,
        f"{what}_ms": ms,
        f"{what}_per_token_ms": ms / n_timed if measured else 0.0,
        f"{what}_per_second": 1e3 * n_timed / ms if measured else 0.0,
    }


def _origin(completion_id: str, kind: str) -> Body:
    return {
        "created": int(time.time()),
        "id": completion_id,
        "model": MODEL,
        "system_fingerprint": BUILD,
        "object": kind,
    }


def _joined(deltas: list[Body], key: str) -> str:
    return "".join(delta.get(key, "") for delta in deltas)


def _joined_calls(parts: list[Body]) -> list[Body]:
    heads = [part for part in parts if "id" in part]
    return [
        {
            "type": "function",
            "function": {
                "name": head["function"]["name"],
                "arguments": "".join(
                    part["function"]["arguments"]
                    for part in parts
                    if part["index"] == head["index"]
                ),
            },
            "id": head["id"],
        }
        for head in heads
    ]
