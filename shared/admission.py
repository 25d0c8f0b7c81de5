"""A turn to be accepted, and what became of that."""

from typing import Any, NamedTuple

from msgspec import Struct

from shared.errors import AgentMismatch, IdempotencyConflict, Quarantined, QueueFull
from shared.record import TurnRecord, TurnRequest, parse_record


class NewTurn(Struct, frozen=True, kw_only=True):
    """`agent`: empty for the thread's own. `body_hash`: of the request. `retry_of`: the turn that
    it tries again, if it does.
    """

    turn_id: str
    thread_id: str
    agent: str
    request: TurnRequest
    idempotency_key: str = ""
    body_hash: str = ""
    retry_of: str = ""


class Admission(NamedTuple):
    """`turn`: as accepted; None when the idempotency key named an earlier one."""

    turn_id: str
    turn: TurnRecord | None

    @property
    def repeated(self) -> bool:
        """The turn was accepted before."""
        return self.turn is None


def parse_admission(new: NewTurn, answer: list[Any]) -> Admission:
    """What admit.lua has answered; raises one of Refused."""
    outcome, *details = answer
    match outcome:
        case b"admitted":
            flat, ahead = details
            return Admission(new.turn_id, parse_record(flat, ahead))
        case b"repeated":
            return Admission(details[0].decode(), None)
        case b"conflict":
            raise IdempotencyConflict("This idempotency key was used before with another body.")
        case b"quarantined":
            raise Quarantined(
                f"Thread {new.thread_id} could not be restored after a turn, and takes no more "
                "until a start of the worker restores it."
            )
        case b"agent_mismatch":
            raise AgentMismatch(f"Thread {new.thread_id} belongs to agent {details[0].decode()!r}.")
        case b"full":
            raise QueueFull(f"The queue is full, with {details[0].decode()} waiting.")
        case _:
            raise AssertionError(f"admit.lua answered {outcome!r}")
