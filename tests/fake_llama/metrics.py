"""What /metrics counts: prompts at the end of their prefill, the rest when the slot is released."""

from collections.abc import Sequence
from math import ceil

from tests.fake_llama.script import Call
from tests.fake_llama.slot import Slot

CONTENT_TYPE = "text/plain; version=0.0.4"
COUNTERS = {
    "prompt_tokens_total": "Number of prompt tokens processed, excluding cached tokens",
    "prompt_tokens_cached_total": "Number of prompt tokens reused from the cache",
    "prompt_seconds_total": "Total time spent processing prompts",
    "tokens_predicted_total": "Number of generation tokens processed",
    "tokens_predicted_seconds_total": "Total time spent generating tokens",
    "n_decode_total": "Total number of llama_decode() calls, excluding speculative decoding and"
    " multimodal decoding",
    "n_tokens_max": "Largest observed sequence length (prompt + generation)",
    "spec_decode_num_draft_tokens_total": "Speculative: Total draft tokens generated",
    "spec_decode_num_accepted_tokens_total": "Speculative: Total draft tokens accepted by the"
    " target model",
    "spec_decode_num_drafts_total": "Speculative: Total speculative decoding verification steps",
}
GAUGES = {
    "prompt_tokens_seconds": "Average prompt throughput in tokens/s",
    "predicted_tokens_seconds": "Average generation throughput in tokens/s",
    "requests_processing": "Number of requests processing",
    "requests_deferred": "Number of requests deferred",
    "n_busy_slots_per_decode": "Average number of busy slots per llama_decode() call",
}


def exposed(calls: Sequence[Call], slot: Slot) -> str:
    """The text of /metrics; what is not measured is 0."""
    values = _counted(calls, slot.n_batch)
    values |= _gauged(values) | {
        "requests_processing": int(slot.holder is not None),
        "requests_deferred": sum(call.state == "queued" for call in calls),
    }
    lines = (
        _exposed(name, kind, meaning, values.get(name, 0))
        for kind, metrics in (("counter", COUNTERS), ("gauge", GAUGES))
        for name, meaning in metrics.items()
    )
    return "".join(lines)


def _counted(calls: Sequence[Call], n_batch: int) -> dict[str, float]:
    prefilled = [call for call in calls if call.state not in ("queued", "prefill")]
    ended = [call for call in calls if call.ended_at is not None]
    return {
        "prompt_tokens_total": sum(call.n_processed for call in prefilled),
        "prompt_tokens_cached_total": sum(call.n_cached for call in prefilled),
        "prompt_seconds_total": sum(call.prompt_seconds for call in prefilled),
        "tokens_predicted_total": sum(call.n_decoded for call in ended),
        "tokens_predicted_seconds_total": sum(call.predicted_seconds for call in ended),
        "n_decode_total": sum(_n_decodes(call, n_batch) for call in calls),
        "n_tokens_max": max((call.n_in_slot for call in calls), default=0),
    }


def _n_decodes(call: Call, n_batch: int) -> int:
    """The first token is sampled from the last batch of the prompt."""
    return ceil(call.n_processed / n_batch) + max(call.n_decoded - 1, 0)


def _gauged(counted: dict[str, float]) -> dict[str, float]:
    return {
        "prompt_tokens_seconds": _rate(counted, "prompt_tokens_total", "prompt_seconds_total"),
        "predicted_tokens_seconds": _rate(
            counted, "tokens_predicted_total", "tokens_predicted_seconds_total"
        ),
        "n_busy_slots_per_decode": int(counted["n_decode_total"] > 0),
    }


def _rate(counted: dict[str, float], tokens: str, seconds: str) -> float:
    return counted[tokens] / counted[seconds] if counted[seconds] else 0


def _exposed(name: str, kind: str, meaning: str, value: float) -> str:
    name = f"llamacpp:{name}"
    number = str(value) if isinstance(value, int) else f"{value:.6g}"
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n{name} {number}\n"
