"""What the server tells about itself: /props, /v1/models and /slots."""

import time

from tests.fake_llama.parameters import parameters
from tests.fake_llama.script import Body, Call
from tests.fake_llama.slot import Slot
from tests.fake_llama.tokens import token_limit
from tests.fake_llama.wire import BUILD, MODEL, random_name

OK: Body = {"status": "ok"}
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
CAPABLE_OF = ("parallel_tool_calls", "preserve_reasoning", "string_content", "system_role")
INCAPABLE_OF = ("object_arguments", "reasoning_effort", "typed_content")


def props(n_ctx: int) -> Body:
    return {
        "default_generation_settings": {"params": parameters(), "n_ctx": n_ctx},
        "total_slots": 1,
        "model_alias": MODEL,
        "model_ftype": "F16",
        "model_path": MODEL,
        "modalities": dict.fromkeys(("vision", "video", "audio"), False),
        "media_marker": f"<__media_{random_name()}__>",
        "endpoint_slots": True,
        "endpoint_props": True,
        "endpoint_metrics": True,
        "ui": True,
        "ui_settings": {},
        "chat_template": TEMPLATE,
        "chat_template_caps": _capabilities(),
        "bos_token": "",
        "eos_token": "\n",
        "build_info": BUILD,
        "is_sleeping": False,
        "cors_proxy_enabled": False,
    }


def models(n_ctx: int) -> Body:
    listed = {
        "name": MODEL,
        "model": MODEL,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": ["completion"],
        "parameters": "",
        "details": _details(),
    }
    return {"models": [listed], "object": "list", "data": [_model(n_ctx)]}


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
            "params": parameters(slot.last.body) if slot.last else {},
            "next_token": [_next_token(call)],
        }
    ]


def _capabilities() -> Body:
    capable = dict.fromkeys(("tools", "tool_calls", *CAPABLE_OF), True)
    capabilities = capable | dict.fromkeys(INCAPABLE_OF, False)
    return {f"supports_{name}": value for name, value in capabilities.items()}


def _details() -> Body:
    kind = {"parent_model": "", "format": "gguf", "family": "", "families": [""]}
    return {**kind, "parameter_size": "", "quantization_level": ""}


def _model(n_ctx: int) -> Body:
    counts = {"n_ctx": n_ctx, "n_ctx_train": n_ctx, "n_embd": 1, "n_params": 1, "size": 2}
    return {
        "id": MODEL,
        "aliases": [MODEL],
        "tags": [],
        "object": "model",
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "created": int(time.time()),
        "owned_by": "llamacpp",
        "meta": {"vocab_type": 2, "n_vocab": 1, **counts, "ftype": "F16"},
    }


def _next_token(call: Call | None) -> Body:
    n_decoded = call.n_decoded if call else 0
    limit = token_limit(call.body) if call else -1
    return {
        "has_next_token": call is not None,
        "has_new_line": False,
        "n_remain": limit if limit < 0 else limit - n_decoded,
        "n_decoded": n_decoded,
    }
