"""Why a turn failed, as a person may read it: never a traceback, a path or a secret."""

import logging
import traceback

import openai
from langgraph.errors import GraphRecursionError

from shared.record import Failure

MOST_CHARS = 300

log = logging.getLogger(__name__)


class TurnTimeout(Exception):
    """The turn ran for TURN_TIMEOUT_S."""


class WorkerStopping(Exception):
    """The worker was told to stop."""


class AgentCancelled(Exception):
    """The agent's own code let a cancellation out."""


class UnknownAgent(Exception):
    """The worker was not given the agent that the API knows; its argument is the name."""


WORKER_LOST = Failure("worker_lost", "The worker stopped while this turn was running.")


def explain(error: BaseException) -> Failure:
    """The code and sentence for what ended a turn; the details belong into the log."""
    match error:
        case WorkerStopping():
            return WORKER_LOST
        case TurnTimeout():
            return Failure("timeout", "The turn ran longer than TURN_TIMEOUT_S allows.")
        case AgentCancelled():
            return Failure("agent", "The agent was cancelled by its own code.")
        case UnknownAgent():
            return Failure("agent", f"The worker has no agent {error}: is its AGENTS the API's?")
        case GraphRecursionError():
            return Failure("step_limit", "The agent took more steps than STEP_LIMIT allows.")
        case openai.APIConnectionError():
            return Failure("model_unavailable", "The model server could not be reached.")
        case openai.APIError():
            return Failure("model_error", f"The model server failed: {quote(error.message)}")
        case _:
            return Failure("agent", f"The agent failed with {type(error).__name__}.")


def quote(message: str) -> str:
    """The first line of a server's own words, without what looks like a path."""
    words = message.partition("\n")[0][:MOST_CHARS].split()
    return " ".join("…" if word.startswith(("/", "\\")) else word for word in words)


def log_failure(turn_id: str, error: Exception) -> None:
    """Where a turn failed. What the error says may be somebody's text: that only at DEBUG."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("Turn %s failed with %s.\n%s", turn_id, type(error).__name__, frames.rstrip())
    log.debug("Turn %s", turn_id, exc_info=error)
