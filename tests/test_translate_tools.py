"""Tool calls and their results, as LangGraph streams them and as chunks."""

import pytest
from langchain_core.messages import (
    HumanMessage,
    RemoveMessage,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import Overwrite

from shared.chunks import (
    Chunk,
    ToolStatus,
)
from tests.parts_made import (
    CAT,
    LS,
    calling,
    heard,
    outcome,
    piece,
    result,
    stepped,
    translate,
    use,
    wrote,
)
from worker.graph import Part

TABLE: dict[str, tuple[list[Part], list[Chunk]]] = {
    "a tool call once it is whole": (
        [
            heard(
                piece(
                    "",
                    tool_call_chunks=[
                        {
                            "index": 0,
                            "id": "c1",
                            "name": "ls",
                            "args": '{"pa',
                            "type": "tool_call_chunk",
                        }
                    ],
                )
            ),
            heard(
                piece(
                    "",
                    tool_call_chunks=[
                        {
                            "index": 0,
                            "id": None,
                            "name": None,
                            "args": 'th"',
                            "type": "tool_call_chunk",
                        }
                    ],
                )
            ),
            stepped(calling(LS)),
        ],
        [use(LS)],
    ),
    "parallel calls, answered in another order": (
        [stepped(calling(LS, CAT)), stepped(result("b", "c2", name="cat")), stepped(result("a"))],
        [use(LS), use(CAT), outcome("b", CAT), outcome("a")],
    ),
    "a tool message among the messages is told by its step": (
        [stepped(calling(LS)), heard(result("a")), stepped(result("a"))],
        [use(LS), outcome("a")],
    ),
    "a result out of content blocks": (
        [stepped(calling(LS)), stepped(result([{"type": "text", "text": "a"}, "b"]))],
        [use(LS), outcome("ab")],
    ),
    "a result without a name has that of its call": (
        [stepped(calling(LS)), stepped(result("a", name=None))],
        [use(LS), outcome("a")],
    ),
    "results of a node that runs several tools at once": (
        [
            stepped(calling(LS, CAT)),
            wrote([{"messages": [result("a")]}, {"messages": [result("b", "c2", name="cat")]}]),
        ],
        [use(LS), use(CAT), outcome("a"), outcome("b", CAT)],
    ),
    "a call and a result that come again": (
        [stepped(calling(LS)), stepped(calling(LS)), stepped(result("a")), stepped(result("a"))],
        [use(LS), outcome("a")],
    ),
    "a result without a call": ([stepped(result("a", "unheard of"))], []),
    "a history written anew is no news": (
        [
            stepped(calling(LS)),
            wrote({"messages": Overwrite([calling(CAT), result("b", "c2", name="cat")])}),
        ],
        [use(LS)],
    ),
    "a history removed and written anew is no news either": (
        [
            stepped(calling(LS)),
            stepped(
                *(RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("hi")),
                *(calling(CAT), result("b", "c2", name="cat"), result("a")),
            ),
        ],
        [use(LS)],
    ),
    "one message alone": ([wrote({"messages": calling(LS)})], [use(LS)]),
}


@pytest.mark.parametrize(("parts", "expected"), TABLE.values(), ids=TABLE.keys())
def test_parts_of_the_stream_become_chunks(parts: list[Part], expected: list[Chunk]) -> None:
    assert translate(*parts) == expected


@pytest.mark.parametrize(
    ("content", "status", "expected"),
    [
        ("fine", "success", "ok"),
        ("TOOL_VALIDATION_ERROR: no path", "success", "validation_error"),
        ("TOOL_API_ERROR: 503", "success", "api_error"),
        ("went wrong", "error", "error"),
        ("TOOL_API_ERROR: 503", "error", "api_error"),
        ("He said TOOL_API_ERROR: 503", "success", "ok"),
        ("", "success", "ok"),
    ],
)
def test_how_a_tool_call_ended(content: str, status: str, expected: ToolStatus) -> None:
    _, chunk = translate(stepped(calling(LS)), stepped(result(content, status=status)))
    assert chunk == outcome(content, status=expected)


@pytest.mark.parametrize(
    ("content", "preview", "truncated"), [("1234", "1234", False), ("12345", "1234", True)]
)
def test_a_long_result_is_cut(content: str, preview: str, truncated: bool) -> None:
    _, chunk = translate(stepped(calling(LS)), stepped(result(content)), preview_chars=4)
    assert chunk == outcome(preview, truncated=truncated)
