"""Why a turn failed, as a person may read it: never a traceback, a path or a secret."""

import logging
import traceback

import openai
from langchain_core.exceptions import ContextOverflowError
from langgraph.errors import GraphRecursionError

from shared.record import Failure

MOST_CHARS = 300

log = logging.getLogger(__name__)


TIMEOUT = Failure("timeout", "The turn ran longer than TURN_TIMEOUT_S allows.")
ROLLBACK_FAILED = Failure(
    "rollback_failed",
    "The thread could not be restored. It takes no turns until a start of the worker restores it.",
)


def worker_lost(times: int) -> Failure:
    """The turn is not tried again after so many."""
    often = "" if times == 1 else " twice" if times == 2 else f" {times} times"
    return Failure("worker_lost", f"The worker was lost{often} while this turn was running.")


class TurnFailed(Exception):
    """Ends a turn, and knows what to say of it."""

    failure: Failure


class ThreadQuarantined(TurnFailed):
    """The thread could not be restored after an earlier turn."""

    failure = ROLLBACK_FAILED


class ThreadOfAnother(TurnFailed):
    """The turn was accepted while Redis did not know the thread."""

    def __init__(self, thread_id: str, agent: str) -> None:
        self.failure = Failure("agent", f"Thread {thread_id} belongs to agent {agent!r}.")


class AgentCancelled(TurnFailed):
    """The agent's own code let a cancellation out."""

    failure = Failure("agent", "The agent was cancelled by its own code.")


class AgentBroke(TurnFailed):
    """The agent raised what is no ordinary error."""

    def __init__(self, error: BaseException) -> None:
        self.failure = Failure("agent", f"The agent failed with {type(error).__name__}.")


class UnknownAgent(TurnFailed):
    """The worker was not given an agent that the API knows."""

    def __init__(self, agent: str) -> None:
        message = f"The worker has no agent {agent}: is its AGENTS the same as the API's?"
        self.failure = Failure("agent", message)


def explain(error: Exception) -> Failure:
    """The code and sentence for what ended a turn; the details belong into the log."""
    match error:
        case TurnFailed():
            return error.failure
        case GraphRecursionError():
            return Failure("step_limit", "The agent took more steps than STEP_LIMIT allows.")
        case openai.APIConnectionError():
            return Failure("model_unavailable", "The model server could not be reached.")
        case ContextOverflowError():
            return Failure("model_error", "The conversation is longer than the model's context.")
        case openai.APIError():
            return Failure("model_error", f"The model server failed: {quote(error.message)}")
        case _:
            return AgentBroke(error).failure


def quote(message: str) -> str:
    """The first line of a server's own words, without what looks like a path."""
    words = message.partition("\n")[0][:MOST_CHARS].split()
    return " ".join("…" if word.startswith(("/", "\\")) else word for word in words)


def log_failure(turn_id: str, error: Exception) -> None:
    """That a turn failed, and where if that tells something.

    What the error itself says may be somebody's text: that only at DEBUG.
    """
    log.error("Turn %s failed with %s.", turn_id, type(error).__name__)
    if not isinstance(error, (TurnFailed, openai.APIError)):
        frames = "".join(traceback.format_tb(error.__traceback__))
        log.error("Where turn %s failed:\n%s", turn_id, frames.rstrip())
    log.debug("Turn %s", turn_id, exc_info=error)
