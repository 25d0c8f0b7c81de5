"""Figures add up; what nobody stated stays unknown."""

from shared.usage import CallUsage, TurnUsage, add_up


def call(index: int, prompt: int | None, out: int | None, cached: int | None) -> CallUsage:
    return CallUsage(call_index=index, input_tokens=prompt, output_tokens=out, cache_read=cached)


def test_the_totals_of_a_turn() -> None:
    calls = [call(1, 100, 5, 0), call(2, 300, 7, 90), call(3, 200, 1, 150)]
    assert add_up(calls, 3) == TurnUsage(
        calls=calls,
        model_calls=3,
        prompt_tokens_total=600,
        cache_read_total=240,
        completion_tokens_total=13,
        context_start=100,
        context_end=200,
        context_peak=300,
    )


def test_what_no_call_stated_is_unknown_and_not_zero() -> None:
    calls = [call(1, None, None, None)]
    assert add_up(calls, 1) == TurnUsage(calls=calls, model_calls=1)
    assert add_up([], 0) == TurnUsage()


def test_what_some_calls_stated_is_added_up() -> None:
    usage = add_up([call(1, None, 4, None), call(2, 50, None, None), call(3, None, 6, 0)], 4)
    assert usage.completion_tokens_total == 10
    assert (usage.context_start, usage.context_end, usage.context_peak) == (50, 50, 50)
    assert usage.cache_read_total == 0  # stated to be none: known
    assert usage.model_calls == 4


def test_unknown_is_none_by_default() -> None:
    silent = CallUsage(call_index=1)
    stated = {name for name in CallUsage.__struct_fields__ if getattr(silent, name) is not None}
    assert stated == {"call_index", "message_id", "partial", "agent"}
