"""Turns and chunks to test with, each complete and told apart by what the test changes."""

from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from shared import chunks
from shared.admission import NewTurn
from shared.chunks import (
    Cancelled,
    Chunk,
    Done,
    Error,
    Place,
    Queued,
    Source,
    Text,
)
from shared.claims import Claims
from shared.record import Failure, Lifetimes, TurnRecord, TurnRequest
from shared.stream import Entry
from shared.summary import CancelSummary, ErrorSummary, Summary
from shared.turns import Turns

LIFETIMES = Lifetimes(chunks_s=100, turn_s=200)
FAILURE = Failure("agent", "The agent failed.")


def new_turn(**changes: Any) -> NewTurn:
    """A turn that says hi, on a thread of its own."""
    turn_id = str(uuid4())
    usual = NewTurn(
        turn_id=turn_id,
        thread_id=f"thread-of-{turn_id}",
        agent="",
        request=TurnRequest(text="hi"),
    )
    return replace(usual, **changes)


async def accept(turns: Turns, **changes: Any) -> TurnRecord:
    """A turn that waits in the queue."""
    new = new_turn(**changes)
    await turns.admit(new, limit=1000, default_agent="chat")
    return await turns.read(new.turn_id)


async def start(turns: Turns, claims: Claims, **changes: Any) -> TurnRecord:
    """A turn that runs."""
    return await claim(claims, await accept(turns, **changes))


async def claim(claims: Claims, turn: TurnRecord) -> TurnRecord:
    """The turn as the worker gets it."""
    claimed = await claims.claim(turn.turn_id)
    assert claimed is not None
    return claimed


def claimed_turn(**changes: Any) -> TurnRecord:
    """A running turn that no Redis has heard of."""
    usual = TurnRecord(
        turn_id="turn",
        thread_id="thread",
        agent="chat",
        request=TurnRequest(text="hi"),
        status="running",
        created_at=1000,
        started_at=3500,
        finished_at=None,
        attempt=1,
        claim=1,
        seq=1,
        run_id="turn",
        trace_url=None,
        error=None,
        usage=None,
        idempotency_key="",
    )
    return replace(usual, **changes)


def entry(seq: int, chunk: Chunk) -> Entry:
    """The chunk as it is stored."""
    return Entry(seq, chunks.type_of(chunk), chunks.encode(chunk))


def queued(turn: TurnRecord) -> Queued:
    """That the turn waits."""
    return Queued(turn_id=turn.turn_id, metadata=Place(position=0))


def text(turn: TurnRecord, content: str, message_id: str = "message") -> Text:
    """What the agent says."""
    return Text(turn_id=turn.turn_id, content=content, metadata=Source(message_id))


def done(turn: TurnRecord) -> Done:
    """A good end."""
    return Done(turn_id=turn.turn_id, metadata=Summary(elapsed_s=1, queued_s=0))


def failed(turn: TurnRecord, failure: Failure = FAILURE) -> Error:
    """A bad end."""
    summary = ErrorSummary(elapsed_s=1, queued_s=0, code=failure.code, rolled_back_messages=2)
    return Error(turn_id=turn.turn_id, content=failure.message, metadata=summary)


def undone(turn: TurnRecord) -> Cancelled:
    """The end of a turn that was cancelled after its start."""
    summary = CancelSummary(elapsed_s=1, queued_s=0, rolled_back_messages=3)
    return Cancelled(turn_id=turn.turn_id, metadata=summary)
