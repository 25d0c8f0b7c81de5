"""Chunks as they are sent: the stored ones with their number, and a stream of them."""

from typing import Annotated, cast, get_args

import msgspec
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import Example
from msgspec import Meta, Raw, Struct

from api.openapi.examples import ANSWER_ID, CALLS, TURN_ID, USAGE
from api.sse import RETRY_MS, encode_event
from shared import chunks
from shared.chunks import (
    Cancelled,
    Done,
    Error,
    Interruption,
    Place,
    Queued,
    Rewind,
    Source,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
    ToolUse,
    Usage,
)
from shared.summary import CancelSummary, ErrorSummary, Summary

MEDIA_TYPE = "text/event-stream"

Seq = Annotated[int, Meta(ge=1, description="Counts the turn's chunks from 1 without a gap.")]

SOURCE = Source(ANSWER_ID)
TURN: tuple[chunks.Chunk, ...] = (
    Queued(turn_id=TURN_ID, metadata=Place(position=1)),
    Usage(turn_id=TURN_ID, metadata=CALLS[0]),
    ToolUse(
        turn_id=TURN_ID,
        content="ls",
        metadata=ToolCall(call_id="c1", name="ls", args={"path": "/"}),
    ),
    ToolResult(
        turn_id=TURN_ID,
        content="['/notes.md']",
        metadata=ToolOutcome(
            call_id="c1", name="ls", status="ok", truncated=False, elapsed_s=0.012
        ),
    ),
    Text(turn_id=TURN_ID, content="One file: ", metadata=SOURCE),
    Text(turn_id=TURN_ID, content="notes.md.", metadata=SOURCE),
    Usage(turn_id=TURN_ID, metadata=CALLS[1]),
    Done(
        turn_id=TURN_ID,
        metadata=Summary(
            elapsed_s=1.461,
            queued_s=0.212,
            tool_calls=1,
            model_calls=2,
            finish_reason="stop",
            chars=19,
            run_id=TURN_ID,
            usage=USAGE,
            context_tokens=450,
        ),
    ),
)
RESUMED: tuple[chunks.Chunk, ...] = (
    *TURN[:5],
    Rewind(turn_id=TURN_ID, metadata=Interruption(to_seq=4, reason="worker_lost")),
    Queued(turn_id=TURN_ID, metadata=Place(position=0)),
    *TURN[4:],
)
"""The same turn, whose worker is lost in the middle of the answer."""
OTHER_ENDS: tuple[chunks.Chunk, ...] = (
    Error(
        turn_id=TURN_ID,
        content="The model server is away.",
        metadata=ErrorSummary(
            elapsed_s=0.4, queued_s=0.212, rolled_back_messages=1, code="model_unavailable"
        ),
    ),
    Cancelled(
        turn_id=TURN_ID,
        metadata=CancelSummary(elapsed_s=1.2, queued_s=0.212, rolled_back_messages=3),
    ),
)


class Chunk:
    """One event of a turn, told apart by `type`, which says what `metadata` holds.

    After a `rewind` the chunks from the one after its `to_seq` up to itself are void: drop them.
    `completed` is true for the last one: `done`, `error` or `cancelled`.
    """


def stream_spec(description: str) -> ResponseSpec:
    """A stream of chunks, one in the `data` of each event."""
    return ResponseSpec(
        Chunk,
        description=description,
        media_type=MEDIA_TYPE,
        generate_examples=False,
        examples=[
            Example(id="turn", summary="a whole turn", value=example_stream(TURN)),
            Example(id="resumed", summary="one that was broken off", value=example_stream(RESUMED)),
        ],
    )


def example_stream(turn: tuple[chunks.Chunk, ...]) -> str:
    """The turn's bytes, as they are sent."""
    events = [
        encode_event(str(seq), chunks.type_of(chunk), chunks.frame(seq, chunks.encode(chunk)))
        for seq, chunk in enumerate(turn, 1)
    ]
    return f"retry: {RETRY_MS}\n" + b"".join(events).decode()


def example_chunks() -> list[Raw]:
    """One chunk of each type, as sent."""
    examples = {type(chunk): (seq, chunk) for seq, chunk in enumerate(RESUMED, 1)}
    ends = {type(end): (2, end) for end in OTHER_ENDS}
    return [
        Raw(chunks.frame(seq, chunks.encode(chunk))) for seq, chunk in (examples | ends).values()
    ]


def tag_of(kind: type[Struct]) -> str:
    """What `type` says in chunks of this kind."""
    return str(kind.__struct_config__.tag)


def _number(kind: type[Struct]) -> type[Struct]:
    return msgspec.defstruct(
        f"{kind.__name__}Chunk",
        [("seq", Seq)],
        bases=(kind,),
        namespace={"__doc__": kind.__doc__},
        module=__name__,
        tag_field="type",
        tag=tag_of(kind),
        frozen=True,
        kw_only=True,
    )


SENT = [_number(kind) for kind in cast(tuple[type[Struct], ...], get_args(chunks.Chunk))]
"""Every type of chunk with its `seq`."""
