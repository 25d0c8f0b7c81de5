"""Token counts and speeds as llama-server stated them, never estimated; None: it said nothing."""

from collections.abc import Iterable

from msgspec import Struct


class CallUsage(Struct, frozen=True, kw_only=True):
    """One model call. Tokens are counts, `*_ms` milliseconds, `*_tps` tokens per second.

    `input_tokens` is the whole prompt, the cached part (`cache_read`) included; `output_tokens`
    includes reasoning and the end-of-turn token. Source: `usage` and `timings` of the last event
    of llama-server's stream. `message_id`: of the answer. `partial`: the call was cut and the
    figures are the last ones heard.
    """

    call_index: int
    message_id: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    prefill_tps: float | None = None
    decode_tps: float | None = None
    prompt_ms: float | None = None
    predicted_ms: float | None = None
    n_ctx: int | None = None
    context_pct: float | None = None
    partial: bool = False
    agent: list[str] = []


class TurnUsage(Struct, frozen=True, kw_only=True):
    """All calls of a turn. `context_*`: prompt sizes of its own agent, not of sub-agents."""

    calls: list[CallUsage] = []
    model_calls: int = 0
    prompt_tokens_total: int | None = None
    cache_read_total: int | None = None
    completion_tokens_total: int | None = None
    context_start: int | None = None
    context_end: int | None = None
    context_peak: int | None = None
    compacted: bool = False


class ThreadUsage(Struct, frozen=True, kw_only=True):
    """All turns of a thread that have run, cancelled and failed ones too; tokens are counts.

    `elapsed_s_total`: seconds from acceptance to end. `context_end`: prompt size of the last call
    for which the server stated one.
    """

    prompt_tokens_total: int | None = None
    cache_read_total: int | None = None
    completion_tokens_total: int | None = None
    model_calls_total: int = 0
    elapsed_s_total: float = 0.0
    context_end: int | None = None


def add_up(calls: list[CallUsage], model_calls: int) -> TurnUsage:
    """The totals of `model_calls` calls from those with figures; what none stated stays None."""
    own = [call.input_tokens for call in calls if not call.agent]
    contexts = [tokens for tokens in own if tokens is not None]
    return TurnUsage(
        calls=calls,
        model_calls=model_calls,
        prompt_tokens_total=_total(call.input_tokens for call in calls),
        cache_read_total=_total(call.cache_read for call in calls),
        completion_tokens_total=_total(call.output_tokens for call in calls),
        context_start=contexts[0] if contexts else None,
        context_end=contexts[-1] if contexts else None,
        context_peak=max(contexts, default=None),
    )


def _total(figures: Iterable[int | None]) -> int | None:
    stated = [figure for figure in figures if figure is not None]
    return sum(stated) if stated else None
