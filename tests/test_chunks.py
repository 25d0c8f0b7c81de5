"""Every chunk on the wire: its exact JSON, and the same value back."""

import json
from typing import Any, get_args

import msgspec
import pytest

from shared import chunks
from shared.chunks import Chunk, Source, Text, ToolCall, ToolUse
from tests.chunk_table import TABLE, USUAL

HOSTILE = [
    *("\r", "a\rb\r\nc\n\n", "\u2028\u2029", "\x00", "\u0085", "data: x\n\n", '"}\\', " ", ""),
    *("\U0001f600", "\U0001f469\u200d\U0001f467"),
]


def test_the_table_knows_every_chunk() -> None:
    assert {type(chunk) for chunk, _ in TABLE} == set(get_args(Chunk))


@pytest.mark.parametrize(("chunk", "sent"), TABLE, ids=lambda row: type(row).__name__)
def test_a_chunk_is_exactly_this_json_and_comes_back_equal(
    chunk: Chunk, sent: dict[str, Any]
) -> None:
    data = chunks.frame(7, chunks.encode(chunk))
    assert json.loads(data) == USUAL | sent
    assert next(iter(json.loads(data))) == "seq"
    assert chunks.parse(data) == (7, chunk)
    assert chunks.type_of(chunk) == sent["type"]


@pytest.mark.parametrize("chunk", [chunk for chunk, _ in TABLE], ids=chunks.type_of)
def test_only_terminal_chunks_complete_a_turn(chunk: Chunk) -> None:
    assert chunk.completed == (chunks.type_of(chunk) in chunks.TERMINAL_TYPES)


@pytest.mark.parametrize("content", HOSTILE)
def test_hostile_text_comes_back_equal(content: str) -> None:
    source = Source(content, [content])
    chunk = Text(turn_id=content, content=content, metadata=source)
    assert chunks.parse(chunks.frame(1, chunks.encode(chunk))) == (1, chunk)


def test_a_surrogate_pair_in_json_is_one_character() -> None:
    body = chunks.encode(Text(turn_id="t", content="@", metadata=Source("m")))
    _, chunk = chunks.parse(chunks.frame(1, body.replace(b"@", rb"\ud83d\ude00")))
    assert chunk.content == "\U0001f600"


def test_the_arguments_of_a_tool_keep_numbers_of_any_size() -> None:
    call = ToolCall(call_id="c", name="n", args={"big": 2**70, "deep": [{"a": [1.5, True]}]})
    chunk = ToolUse(turn_id="t", metadata=call)
    assert chunks.parse(chunks.frame(1, chunks.encode(chunk))) == (1, chunk)


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"[]",
        b"{}",
        b"not json",
        b'{"seq":1}',
        b'{"seq":1,"turn_id":"t","type":"unheard_of","metadata":{}}',
        b'{"seq":1,"turn_id":"t","type":"text","content":"no metadata"}',
        b'{"seq":"1","turn_id":"t","type":"queued","metadata":{"position":1}}',
        b'{"turn_id":"t","type":"queued","metadata":{"position":1}}',
        b'{"seq":1,"turn_id":"\xff","type":"queued","metadata":{"position":1}}',
    ],
)
def test_what_is_no_chunk_is_refused(garbage: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        chunks.parse(garbage)


def test_what_json_cannot_hold_is_mended() -> None:
    call = ToolCall(call_id="c", name="cat\udce9", args={"n\ud800": [2**70, "\ud83d\ude00"]})
    body = chunks.encode(ToolUse(turn_id="t", content="cat\udce9", metadata=call))
    told = json.loads(chunks.frame(1, body))
    assert (told["content"], told["metadata"]["name"]) == ("cat\ufffd", "cat\ufffd")
    assert told["metadata"]["args"] == {"n\ufffd": [2**70, "\U0001f600"]}
