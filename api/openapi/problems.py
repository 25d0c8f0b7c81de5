"""Every problem that the API answers, and which of them a route may answer."""

from collections import defaultdict
from typing import Any, Literal

from litestar.openapi import ResponseSpec
from litestar.openapi.spec import Example
from msgspec import Struct
from msgspec.structs import asdict

from api import problems
from api.problems import Problem, describe_problem
from api.schemas import Llama, Worker


class TranscriptLink(Struct, frozen=True):
    """Where the thread can still be read."""

    transcript: str


class GoneProblem(Problem, frozen=True, kw_only=True):
    """The chunks after the cursor cannot be had."""

    links: TranscriptLink


class NotReadyProblem(Problem, frozen=True, kw_only=True):
    """What a turn needs, each by name; what could not be learned is null."""

    redis: Literal["ok", "down"]
    worker: Worker | None
    llama: Llama | None


class Entry(Struct, frozen=True):
    """A problem by its code; `members` are what this kind adds to the others."""

    status: int
    detail: str
    kind: type[Problem] = Problem
    members: dict[str, Any] = {}


GONE = {"links": TranscriptLink("/threads/tour/messages")}
NOT_READY = {"redis": "ok", "worker": "lost", "llama": None}

CATALOGUE: dict[str, Entry] = {
    "not_json": Entry(400, "The body is not JSON in UTF-8."),
    "bad_cursor": Entry(400, "Last-Event-ID or after is not the number of a chunk."),
    "unauthorized": Entry(401, "Send the header Authorization: Bearer with the API's token."),
    "foreign_origin": Entry(403, "This origin may not ask."),
    "foreign_host": Entry(403, "This is not the name of this host."),
    "unknown_turn": Entry(404, "No turn 01a22cee-8a99-762e-bc3f-92bd7b6add43 is known."),
    "agent_mismatch": Entry(409, "Thread tour belongs to agent 'chat'."),
    "idempotency_conflict": Entry(409, "This idempotency key was used before with another body."),
    "quarantined": Entry(409, "Thread tour could not be restored after a turn."),
    "not_retryable": Entry(409, "The turn is done; what failed or was cancelled can be retried."),
    "gone": Entry(410, "The chunks of this turn are no longer kept.", GoneProblem, GONE),
    "too_large": Entry(413, "text is longer than 65536 bytes."),
    "invalid": Entry(422, "Give either text or input."),
    "queue_full": Entry(429, "The queue is full, with 32 waiting."),
    "internal": Entry(500, "Something went wrong here; the log says what."),
    "redis_away": Entry(503, "Redis cannot be reached (ConnectionError)."),
    "not_ready": Entry(503, "A turn would not run now.", NotReadyProblem, NOT_READY),
}
EVERYWHERE = ("foreign_origin", "foreign_host", "internal")
BODY = ("not_json", "too_large")
ADMISSION = (
    *("agent_mismatch", "idempotency_conflict", "quarantined", "invalid"),
    *("queue_full", "redis_away"),
)


def problem_specs(*codes: str) -> dict[int, ResponseSpec]:
    """The problems that a route may answer, and those that every route behind a token may."""
    return open_problem_specs("unauthorized", *codes)


def open_problem_specs(*codes: str) -> dict[int, ResponseSpec]:
    """The problems that a route without a token may answer, and those that every route may."""
    by_status: defaultdict[int, list[str]] = defaultdict(list)
    for code in (*EVERYWHERE, *codes):
        by_status[CATALOGUE[code].status].append(code)
    return {status: _problem_spec(together) for status, together in by_status.items()}


def tabulate_problems() -> str:
    """All codes with their statuses, as a table in Markdown."""
    rows = [f"| `{code}` | {entry.status} | {entry.detail} |" for code, entry in CATALOGUE.items()]
    return "\n".join(("| code | status | for example |", "|---|---|---|", *rows))


def _problem_spec(codes: list[str]) -> ResponseSpec:
    kinds = {CATALOGUE[code].kind for code in codes}
    return ResponseSpec(
        kinds.pop() if len(kinds) == 1 else Problem,
        description=" · ".join(f"`{code}`" for code in codes),
        media_type=problems.MEDIA_TYPE,
        generate_examples=False,
        examples=[Example(id=code, summary=code, value=_example(code)) for code in codes],
    )


def _example(code: str) -> Problem:
    entry = CATALOGUE[code]
    problem = describe_problem(entry.status, code, entry.detail)
    return entry.kind(**asdict(problem), **entry.members)
