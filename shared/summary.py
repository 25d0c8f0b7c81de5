"""What a terminal chunk says of its turn: the metadata of `done`, `error` and `cancelled`."""

from typing import Literal

from msgspec import Struct

from shared.usage import TurnUsage


class Summary(Struct, frozen=True, kw_only=True):
    """A turn's end. Seconds: `elapsed_s` since POST, `queued_s` until its start.

    `chars`: characters of the main agent's answer. `context_tokens`: prompt size of the last call.
    """

    elapsed_s: float
    queued_s: float
    tool_calls: int = 0
    model_calls: int = 0
    finish_reason: str | None = None
    chars: int = 0
    truncated: bool = False
    run_id: str | None = None
    trace_url: str | None = None
    usage: TurnUsage = TurnUsage()
    context_tokens: int | None = None


class CancelSummary(Summary, frozen=True, kw_only=True):
    """`rolled_back_messages`: how many the restore took out of the thread; None: not known."""

    rolled_back_messages: int | None = None


ErrorCode = Literal[
    "agent",
    "model_error",
    "model_unavailable",
    "rollback_failed",
    "step_limit",
    "timeout",
    "worker_lost",
]


class ErrorSummary(CancelSummary, frozen=True, kw_only=True):
    """`code`: what went wrong; `content` says it in a sentence."""

    code: ErrorCode
