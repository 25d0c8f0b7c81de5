"""What LangGraph streams, and the chunks that become of it."""

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
)

from shared import chunks
from shared.chunks import (
    Chunk,
    Usage,
)
from shared.usage import CallUsage
from tests.parts_made import (
    CAT,
    COUNTS,
    HELPER,
    LS,
    calling,
    heard,
    piece,
    result,
    say,
    stepped,
    told,
    translate,
    use,
    wrote,
)
from worker.graph import Part
from worker.translate import Translator

TABLE: dict[str, tuple[list[Part], list[Chunk]]] = {
    "text as it comes": (
        [heard(piece("Hel")), heard(piece("lo")), stepped(AIMessage("Hello", id="m"))],
        [say("Hel"), say("lo")],
    ),
    "text out of content blocks": (
        [heard(piece([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": "x"}]))],
        [say("a")],
    ),
    "no text, no chunk": ([heard(piece("")), heard(piece([]))], []),
    "what the person and the system say is not told": (
        [heard(HumanMessage("hi", id="h")), heard(SystemMessage("be", id="s"))],
        [],
    ),
    "state without messages": (
        [wrote({"todos": ["x"]}), wrote(None), wrote({"messages": None}), wrote((1, 2))],
        [],
    ),
    "what an agent writes to the stream itself": ([((), "custom", {"x": 1})], []),
    "a sub-agent by its name": (
        [
            heard(piece("a"), HELPER, lc_agent_name="helper"),
            stepped(calling(LS), namespace=HELPER),
        ],
        [say("a", ["helper"]), use(LS, ["helper"])],
    ),
    "a sub-agent of a sub-agent": (
        [
            heard(piece("a"), HELPER, lc_agent_name="helper"),
            heard(piece("b"), (*HELPER, "tools:2"), lc_agent_name="deeper"),
        ],
        [say("a", ["helper"]), say("b", ["helper", "deeper"])],
    ),
    "a graph without a name is called by its node": (
        [heard(piece("a"), ("research:1", "model:2"))],
        [say("a", ["research", "model"])],
    ),
    "the main agent's name is not part of the path": (
        [heard(piece("a"), lc_agent_name="main")],
        [say("a")],
    ),
}


@pytest.mark.parametrize(("parts", "expected"), TABLE.values(), ids=TABLE.keys())
def test_parts_of_the_stream_become_chunks(parts: list[Part], expected: list[Chunk]) -> None:
    assert translate(*parts) == expected


def test_the_figures_of_each_call_are_told_once() -> None:
    timings = {"prompt_ms": 5.0, "predicted_per_second": 40.0}
    figures = translate(
        heard(piece("a")),
        heard(piece("", usage_metadata=COUNTS, response_metadata={"timings": timings})),
        stepped(AIMessage("a", id="m", usage_metadata=COUNTS)),
        heard(AIMessageChunk(content="", id="another", usage_metadata=COUNTS)),
    )
    first = CallUsage(
        call_index=1,
        message_id="m",
        input_tokens=10,
        output_tokens=2,
        prompt_ms=5.0,
        decode_tps=40.0,
    )
    second = CallUsage(call_index=2, message_id="another", input_tokens=10, output_tokens=2)
    assert figures == [
        say("a"),
        Usage(turn_id="t", metadata=first),
        Usage(turn_id="t", metadata=second),
    ]


def test_a_turn_is_counted_as_it_is_told() -> None:
    translator = Translator("t", 2000)
    stop = {"finish_reason": "stop"}
    parts = [
        heard(piece("four", usage_metadata=COUNTS, response_metadata={"finish_reason": "length"})),
        stepped(calling(LS, CAT)),
        heard(AIMessageChunk(content="not counted", id="h", response_metadata=stop), HELPER),
        heard(AIMessageChunk(content="cut short", id="i"), HELPER),
    ]
    assert len(list(told(translator, parts))) == 6
    summary = translator.tally.sum_up(elapsed_s=0, queued_s=0, run_id=None)
    assert (summary.chars, summary.finish_reason, summary.truncated) == (4, "length", True)
    assert (summary.tool_calls, summary.model_calls, len(summary.usage.calls)) == (2, 3, 1)


def test_what_no_encoding_can_hold_does_not_end_the_turn() -> None:
    # A file's name of stray bytes, as Python reads it from the system.
    stray = b"caf\xe9".decode(errors="surrogateescape")
    call = {"id": "c1", "name": "cat", "args": {"path": stray, "more": [{stray: 1}]}}
    spoken = translate(heard(piece(stray)), stepped(calling(call)), stepped(result(stray)))
    assert len(spoken) == 3
    for chunk in spoken:
        assert chunks.parse(chunks.frame(1, chunks.encode(chunk))) == (1, chunk)
