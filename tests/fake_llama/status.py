"""What the server tells about itself: /props, /v1/models, /slots and /metrics."""

import time
from collections.abc import Mapping, Sequence
from math import ceil

from tests.fake_llama.script import Body, Call
from tests.fake_llama.slot import Slot
from tests.fake_llama.tokens import token_limit
from tests.fake_llama.wire import BUILD, MODEL

OK: Body = {"status": "ok"}


def props(n_ctx: int) -> Body:
    tools = ("supports_tools", "supports_tool_calls", "supports_parallel_tool_calls")
    return {
        "default_generation_settings": {"params": {}, "n_ctx": n_ctx},
        "total_slots": 1,
        "model_alias": MODEL,
        "model_path": MODEL,
        "chat_template_caps": dict.fromkeys(tools, True),
        "build_info": BUILD,
        "is_sleeping": False,
    }


def models(n_ctx: int) -> Body:
    model = {
        "id": MODEL,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "llamacpp",
        "meta": {"n_ctx": n_ctx, "n_ctx_train": n_ctx},
    }
    return {"object": "list", "data": [model]}


def slots(slot: Slot) -> list[Body]:
    """After its release a slot still tells its last task and how many tokens it keeps."""
    call = slot.holder
    return [
        {
            "id": 0,
            "n_ctx": slot.n_ctx,
            "speculative": False,
            "is_processing": call is not None,
            "id_task": slot.n_tasks,
            "n_prompt_tokens": len(slot.tokens),
            "n_prompt_tokens_processed": call.n_processed if call else 0,
            "n_prompt_tokens_cache": call.n_cached if call else 0,
            "params": {},
            "next_token": [_next_token(call)],
        }
    ]


def metrics(calls: Sequence[Call], slot: Slot) -> str:
    """Prompts are counted at the end of their prefill, the rest at the release of the slot."""
    prefilled = [call for call in calls if call.state not in ("queued", "prefill")]
    ended = [call for call in calls if call.ended_at is not None]
    counters = {
        "prompt_tokens_total": sum(call.n_processed for call in prefilled),
        "prompt_tokens_cached_total": sum(call.n_cached for call in prefilled),
        "prompt_seconds_total": sum(call.prompt_seconds for call in prefilled),
        "tokens_predicted_total": sum(call.n_decoded for call in ended),
        "tokens_predicted_seconds_total": sum(call.predicted_seconds for call in ended),
        "n_decode_total": sum(ceil(c.n_processed / slot.n_batch) + c.n_decoded for c in calls),
    }
    gauges = {
        "requests_processing": int(slot.holder is not None),
        "requests_deferred": sum(call.state == "queued" for call in calls),
    }
    return _exposed("counter", counters) + _exposed("gauge", gauges)


def _next_token(call: Call | None) -> Body:
    n_decoded = call.n_decoded if call else 0
    limit = token_limit(call.body) if call else -1
    return {
        "has_next_token": call is not None,
        "has_new_line": False,
        "n_remain": limit if limit < 0 else limit - n_decoded,
        "n_decoded": n_decoded,
    }


def _exposed(kind: str, values: Mapping[str, float]) -> str:
    return "".join(
        f"# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {value:.10g}\n"
        for name, value in values.items()
    )
