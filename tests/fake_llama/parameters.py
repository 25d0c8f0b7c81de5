"""The sampling parameters that /props and /slots tell: the request's, else the server's own."""

import struct
from typing import Any

from tests.fake_llama.script import Body
from tests.fake_llama.tokens import token_limit

SAMPLERS = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc"]
NUMBERS: dict[str, float] = {
    "temperature": 0.8,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "top_p": 0.95,
    "min_p": 0.05,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.1,
    "typical_p": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.1,
    "adaptive_target": -1.0,
    "adaptive_decay": 0.9,
}
OTHERS: Body = {
    "seed": 4294967295,
    "top_k": 40,
    "repeat_last_n": 64,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 64,
    "mirostat": 0,
    "n_keep": 0,
    "n_discard": 0,
    "ignore_eos": False,
    "stream": False,
    "n_probs": 0,
    "min_keep": 0,
    "reasoning_in_content": False,
    "samplers": [*SAMPLERS, "temperature"],
    "speculative.types": "none",
    "timings_per_token": False,
    "post_sampling_probs": False,
    "backend_sampling": False,
    "lora": [],
}
OWN: Body = {"chat_format": "Content-only", "reasoning_format": "none", "generation_prompt": ""}
OF_A_CHAT: Body = {
    "chat_format": "peg-native",
    "reasoning_format": "deepseek",
    "generation_prompt": "<assistant>",
}


def parameters(body: Body | None = None) -> Body:
    """Those of a chat request, or the server's own."""
    asked = body or {}
    limit = token_limit(asked)
    return {
        **{name: _single(asked.get(name, value)) for name, value in NUMBERS.items()},
        **{name: asked.get(name, value) for name, value in OTHERS.items()},
        **(OWN if body is None else OF_A_CHAT),
        "max_tokens": limit,
        "n_predict": limit,
    }


def _single(value: Any) -> float:
    """The number in single precision."""
    return struct.unpack("f", struct.pack("f", value))[0]
