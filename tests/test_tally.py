"""What a turn adds up to."""

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from shared.summary import Summary
from shared.usage import CallUsage, TurnUsage
from worker.tally import Tally, read_usage

COUNTS = UsageMetadata(
    input_tokens=100,
    output_tokens=7,
    total_tokens=107,
    input_token_details=InputTokenDetails(cache_read=60),
)
TIMINGS = {
    "cache_n": 60,
    "prompt_n": 40,
    "prompt_ms": 20.5,
    "prompt_per_second": 1951.2,
    "predicted_n": 7,
    "predicted_ms": 70.5,
    "predicted_per_second": 99.3,
}


def test_the_figures_of_a_call_are_the_server_s() -> None:
    message = AIMessageChunk(
        content="", usage_metadata=COUNTS, response_metadata={"timings": TIMINGS}
    )
    assert read_usage(message, 2, ["helper"]) == CallUsage(
        call_index=2,
        input_tokens=100,
        output_tokens=7,
        cache_read=60,
        prefill_tps=1951.2,
        decode_tps=99.3,
        prompt_ms=20.5,
        predicted_ms=70.5,
        agent=["helper"],
    )


def test_what_the_server_did_not_say_is_unknown() -> None:
    no_details = UsageMetadata(input_tokens=5, output_tokens=1, total_tokens=6)
    for message, known in [
        (AIMessageChunk(content=""), CallUsage(call_index=1)),
        (
            AIMessageChunk(content="", usage_metadata=no_details),
            CallUsage(call_index=1, input_tokens=5, output_tokens=1),
        ),
        (
            AIMessageChunk(content="", response_metadata={"timings": {"prompt_ms": 3.0}}),
            CallUsage(call_index=1, prompt_ms=3.0),
        ),
    ]:
        assert read_usage(message, 1, []) == known


def test_calls_are_numbered_as_they_come() -> None:
    tally = Tally()
    assert [tally.call_index(each) for each in ("a", "b", "a", "c", "b")] == [1, 2, 1, 3, 2]


def test_text_and_end_are_those_of_the_main_agent() -> None:
    tally = Tally()
    tally.add_text("four", [])
    tally.add_text("of somebody else", ["helper"])
    tally.finish("length", [])
    tally.finish("stop", ["helper"])
    summary = tally.sum_up(elapsed_s=1.23456, queued_s=0.98765, run_id="run")
    assert (summary.chars, summary.finish_reason, summary.truncated) == (4, "length", True)
    assert (summary.elapsed_s, summary.queued_s, summary.run_id) == (1.235, 0.988, "run")


def test_calls_without_figures_are_counted_too() -> None:
    tally = Tally(calls=[CallUsage(call_index=1, input_tokens=10)], tool_calls=3)
    tally.call_index("a")
    tally.call_index("b")
    summary = tally.sum_up(elapsed_s=1, queued_s=0, run_id=None)
    assert (summary.model_calls, summary.usage.model_calls, summary.tool_calls) == (2, 2, 3)
    assert summary.context_tokens == summary.usage.context_end == 10


def test_a_turn_that_did_nothing_knows_nothing() -> None:
    summary = Tally().sum_up(elapsed_s=1, queued_s=0, run_id=None)
    assert summary == Summary(elapsed_s=1, queued_s=0, usage=TurnUsage())


@pytest.mark.parametrize("timings", [[], "fast", {"prompt_ms": "x", "predicted_ms": float("nan")}])
def test_what_is_no_figure_is_unknown(timings: object) -> None:
    message = AIMessageChunk(content="", response_metadata={"timings": timings})
    usage = read_usage(message, 1, [])
    assert (usage.prompt_ms, usage.predicted_ms, usage.prefill_tps) == (None, None, None)
