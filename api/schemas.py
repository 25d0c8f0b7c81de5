"""What the API answers, as it is sent."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from shared.record import Failure, Status, TurnRecord
from shared.requests import Slot
from shared.usage import TurnUsage

Time = Annotated[
    str,
    Meta(
        description="RFC 3339, UTC, with milliseconds",
        examples=["2026-01-31T12:34:56.789Z"],
    ),
]

Llama = Annotated[str, Meta(description="`ok`, `loading` or `down`; null: nobody could ask it.")]

Worker = Literal["ok", "lost"]


class TurnLinks(Struct, frozen=True, kw_only=True):
    """Where to go from a turn: paths on this server."""

    itself: str = msgspec.field(name="self")
    events: str
    cancel: str
    thread: str


class Turn(Struct, frozen=True, kw_only=True):
    """A turn: `text` or `input`, whichever it was given, and what became of it so far."""

    turn_id: Annotated[str, Meta(description="UUID, version 7.")]
    thread_id: Annotated[str, Meta(description="The conversation that the turn belongs to.")]
    agent: str
    text: str | UnsetType = UNSET
    input: dict[str, Any] | UnsetType = UNSET
    status: Status
    position: Annotated[
        int | None,
        Meta(description="Turns before it, the running one included; 0: it runs; null: it ended."),
    ]
    eta_s: Annotated[
        float | None, Meta(description="Seconds until its start; null: not known.")
    ] = None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    attempt: Annotated[int, Meta(description="How often its run was begun; 0 while it waits.")]
    run_id: Annotated[str | None, Meta(description="Of the agent's latest run.")]
    trace_url: str | None
    error: Failure | None
    rolled_back_messages: Annotated[
        int | None, Meta(description="How many messages its end took out of the thread again.")
    ] = None
    usage: TurnUsage | None
    interrupts: Annotated[
        list[dict[str, Any]], Meta(description="Questions that wait for a person's decision.")
    ] = []
    retry_of: Annotated[str | None, Meta(description="The turn that this one tries again.")] = None
    links: TurnLinks


class Queue(Struct, frozen=True, kw_only=True):
    """The queue at one instant."""

    running: Turn | None
    waiting: Annotated[list[Turn], Meta(description="In the order in which they will run.")]
    awaiting_decision: list[Turn] = []
    depth: Annotated[int, Meta(description="How many wait.")]
    limit: Annotated[int, Meta(description="How many may wait.")]
    worker: Literal["alive", "lost"]


class WorkerState(Struct, frozen=True, kw_only=True):
    """The worker's sign of life and the turn that it runs."""

    alive: bool | None
    turn_id: Annotated[str | None, Meta(description="The turn that it runs.")] = None
    since: Time | None = None


class SystemStatus(Struct, frozen=True, kw_only=True):
    """The whole system at a glance; what could not be learned is null."""

    model: str | None
    n_ctx: Annotated[int | None, Meta(description="The model's context, in tokens.")]
    compaction_trigger_tokens: Annotated[
        int | None, Meta(description="Tokens of context at which a conversation is summarized.")
    ]
    slot: Slot | None
    worker: WorkerState
    queue_depth: int | None
    redis: Literal["ok", "down"]
    llama: Llama | None
    versions: Annotated[dict[str, str], Meta(description="By the name of the library.")]


class Live(Struct, frozen=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(Struct, frozen=True, kw_only=True):
    """What a turn needs, each by name; what could not be learned is null."""

    redis: Literal["ok", "down"]
    worker: Worker | None
    llama: Llama | None

    @property
    def ready(self) -> bool:
        """A turn posted now would run."""
        return self.redis == self.worker == self.llama == "ok"


def format_time(seconds: float) -> str:
    """Seconds since the epoch as `Time`."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def present(record: TurnRecord) -> Turn:
    """A stored turn as it is sent."""
    return Turn(
        turn_id=record.turn_id,
        thread_id=record.thread_id,
        agent=record.agent,
        text=UNSET if record.request.text is None else record.request.text,
        input=UNSET if record.request.input is None else record.request.input,
        status=record.status,
        position=record.position,
        created_at=format_time(record.created_at / 1000),
        started_at=_format_ms(record.started_at),
        finished_at=_format_ms(record.finished_at),
        attempt=record.attempt,
        run_id=record.run_id,
        trace_url=record.trace_url,
        error=record.error,
        rolled_back_messages=record.rolled_back_messages,
        usage=record.usage,
        retry_of=record.retry_of,
        links=_link(record),
    )


def turn_path(turn_id: str) -> str:
    """Where a turn is found."""
    return f"/turns/{turn_id}"


def _link(record: TurnRecord) -> TurnLinks:
    path = turn_path(record.turn_id)
    return TurnLinks(
        itself=path,
        events=f"{path}/events",
        cancel=f"{path}/cancel",
        thread=f"/threads/{record.thread_id}",
    )


def _format_ms(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_time(milliseconds / 1000)
