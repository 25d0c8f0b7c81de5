"""What only HTTP can find wrong with a request, and the status of every error.

TurnkeeperError
├── (those of shared.errors)
├── NotJson, BadCursor   400
├── NotRetryable         409
├── Detailed
│   ├── LogGone          410
│   └── NotReady         503
├── TooLarge             413
└── Invalid              422
"""

from typing import Any

from shared import errors
from shared.errors import TurnkeeperError


class NotJson(TurnkeeperError):
    """The body is not JSON in UTF-8."""

    code = "not_json"


class BadCursor(TurnkeeperError):
    """The cursor is not the number of a chunk."""

    code = "bad_cursor"


class NotRetryable(TurnkeeperError):
    """The turn has not failed and was not cancelled."""

    code = "not_retryable"


class Detailed(TurnkeeperError):
    """An error that tells programs more than its code."""

    def __init__(self, detail: str, members: dict[str, Any]) -> None:
        super().__init__(detail)
        self.members = members


class LogGone(Detailed):
    """The chunks after the cursor cannot be had; the transcript of the thread still can."""

    code = "gone"

    def __init__(self, detail: str, thread_id: str) -> None:
        super().__init__(detail, {"links": {"transcript": f"/threads/{thread_id}/messages"}})


class NotReady(Detailed):
    """A turn posted now would not run; `members` name what is there and what is not."""

    code = "not_ready"


class TooLarge(TurnkeeperError):
    """The body or the text is longer than allowed."""

    code = "too_large"


class Invalid(TurnkeeperError):
    """The request is JSON, but cannot be meant."""

    code = "invalid"


class NothingLeft(Exception):
    """The turn has ended and its last chunk is behind the cursor: 204."""


STATUS: dict[type[TurnkeeperError], int] = {
    NotJson: 400,
    BadCursor: 400,
    errors.UnknownTurn: 404,
    errors.AgentMismatch: 409,
    errors.IdempotencyConflict: 409,
    errors.Quarantined: 409,
    NotRetryable: 409,
    LogGone: 410,
    TooLarge: 413,
    Invalid: 422,
    errors.QueueFull: 429,
    NotReady: 503,
    errors.RedisAway: 503,
    errors.WorkerLost: 503,
    errors.WorkerBusy: 503,
}

RETRY_AFTER_S = 30
"""When to try a full queue again, until turn times are measured and say better."""
