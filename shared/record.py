"""What Redis holds of a turn: a hash of strings, here as a value."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from shared.summary import ErrorCode
from shared.usage import TurnUsage

Status = Literal["queued", "running", "cancelling", "done", "error", "cancelled"]
ENDED: frozenset[Status] = frozenset({"done", "error", "cancelled"})


class TurnRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn's input as it came: `text` from a person, or an `input` object for an agent."""

    text: str | None = None
    input: dict[str, Any] | None = None


class Failure(Struct, frozen=True):
    """Why a turn ended in an error: a code to act on and a sentence to read."""

    code: ErrorCode
    message: str


class Run(Struct, frozen=True):
    """One go at a turn. `from_seq`: number of its first chunk; it ends where the next begins."""

    run_id: str
    from_seq: int


class Lifetimes(Struct, frozen=True):
    """Seconds that an ended turn's chunks and record are kept."""

    chunks_s: int
    turn_s: int


class TurnRecord(Struct, frozen=True, kw_only=True):
    """A turn as stored. Times are milliseconds since the epoch, by Redis' clock.

    `position`: turns before it, the running one included; 0 when running, None without a place.
    `seq`: number of its last chunk. `attempt`: 1, and one more for each worker that died with it.
    `claim`: how often a worker has taken it, the last time at `claimed_at`. `ran_ms`: how long it
    ran before that. `retry_of`: the turn whose input it was given again.
    """

    turn_id: str
    thread_id: str
    agent: str
    request: TurnRequest
    status: Status
    created_at: int
    started_at: int | None
    finished_at: int | None
    attempt: int
    claim: int
    seq: int
    run_id: str | None
    trace_url: str | None
    error: Failure | None
    usage: TurnUsage | None
    idempotency_key: str
    body_hash: str = ""
    claimed_at: int | None = None
    ran_ms: int = 0
    runs: list[Run] = []
    retry_of: str | None = None
    rolled_back_messages: int | None = None
    position: int | None = None

    @property
    def queued_s(self) -> float:
        """Seconds from acceptance to the first start; 0 before that."""
        return (self.started_at - self.created_at) / 1000 if self.started_at else 0.0

    @property
    def waited_s(self) -> float:
        """Seconds from acceptance to the last claim; 0 before the first."""
        return (self.claimed_at - self.created_at) / 1000 if self.claimed_at else 0.0

    def age_s(self, now: float) -> float:
        """Seconds from acceptance to `now` (since the epoch), never below 0 for a clock behind."""
        return max(0.0, round(now - self.created_at / 1000, 3))

    def time_after(self, elapsed_s: float) -> int:
        """The time so many seconds after acceptance, in milliseconds since the epoch."""
        return self.created_at + round(1000 * elapsed_s)

    @property
    def ended(self) -> bool:
        """The turn's terminal chunk is written."""
        return self.status in ENDED


_requests = msgspec.json.Decoder(TurnRequest)
_failures = msgspec.json.Decoder(Failure)
_usages = msgspec.json.Decoder(TurnUsage)
_runs = msgspec.json.Decoder(list[Run])


def parse_record(flat: list[bytes], place: int = -1) -> TurnRecord:
    """The record of a hash's names and values in turn; `place` below 0 means none."""
    fields = {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}
    return TurnRecord(
        turn_id=fields["turn_id"].decode(),
        thread_id=fields["thread_id"].decode(),
        agent=fields["agent"].decode(),
        request=_requests.decode(fields["request"]),
        status=msgspec.convert(fields["status"].decode(), Status),
        created_at=int(fields["created_at"]),
        started_at=_number(fields.get("started_at")),
        finished_at=_number(fields.get("finished_at")),
        attempt=int(fields["attempt"]),
        claim=int(fields["claim"]),
        seq=int(fields["seq"]),
        run_id=_text(fields.get("run_id")),
        trace_url=_text(fields.get("trace_url")),
        error=_failures.decode(fields["error"]) if "error" in fields else None,
        usage=_usages.decode(fields["usage"]) if "usage" in fields else None,
        idempotency_key=fields["idempotency_key"].decode(),
        body_hash=_text(fields.get("body_hash")) or "",
        claimed_at=_number(fields.get("claimed_at")),
        ran_ms=_number(fields.get("ran_ms")) or 0,
        runs=_runs.decode(fields["runs"]) if "runs" in fields else [],
        retry_of=_text(fields.get("retry_of")) or None,
        rolled_back_messages=_number(fields.get("rolled_back_messages")),
        position=place if place >= 0 else None,
    )


def write_started(record: TurnRecord) -> list[str | bytes | int]:
    """The names and values in turn of a turn that has started and not ended."""
    fields: dict[str, str | bytes | int] = {
        "turn_id": record.turn_id,
        "thread_id": record.thread_id,
        "agent": record.agent,
        "request": msgspec.json.encode(record.request),
        "created_at": record.created_at,
        "started_at": record.started_at or record.created_at,
        "attempt": record.attempt,
        "claim": record.claim,
        "run_id": record.run_id or record.turn_id,
        "idempotency_key": record.idempotency_key,
        "body_hash": record.body_hash,
        "claimed_at": record.claimed_at or record.created_at,
        "told_at": record.claimed_at or record.created_at,
        "ran_ms": record.ran_ms,
        "runs": msgspec.json.encode(record.runs),
        "retry_of": record.retry_of or "",
    }
    return [part for field in fields.items() for part in field]


def _number(value: bytes | None) -> int | None:
    return None if value is None else int(value)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
