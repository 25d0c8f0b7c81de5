"""Why a turn failed, in words that a person may read."""

import httpx2
import openai
import pytest
from langgraph.errors import GraphRecursionError

from shared.summary import ErrorCode
from worker.failures import MOST_CHARS, ROLLBACK_FAILED, ThreadQuarantined, explain

REQUEST = httpx2.Request("POST", "http://hush-host:8080/v1/chat/completions")


def refused(status: int, message: str) -> openai.APIStatusError:
    response = httpx2.Response(status, request=REQUEST, json={"error": {"message": message}})
    return openai.APIStatusError(message, response=response, body={"message": message})


def unreachable() -> openai.APIConnectionError:
    error = openai.APIConnectionError(request=REQUEST)
    error.__cause__ = httpx2.ConnectError("hush: [Errno 111] /hush/socket")
    return error


class AgentError(Exception):
    """An agent's own."""


TABLE: list[tuple[Exception, ErrorCode, str]] = [
    (ThreadQuarantined(), "rollback_failed", ROLLBACK_FAILED.message),
    (
        GraphRecursionError("Recursion limit of 5 reached in hush_node"),
        *("step_limit", "The agent took more steps than STEP_LIMIT allows."),
    ),
    (unreachable(), "model_unavailable", "The model server could not be reached."),
    (
        openai.APITimeoutError(request=REQUEST),
        *("model_unavailable", "The model server could not be reached."),
    ),
    (refused(500, "Out of memory"), "model_error", "The model server failed: Out of memory"),
    (
        openai.APIError("the stream broke", REQUEST, body=None),
        *("model_error", "The model server failed: the stream broke"),
    ),
    (KeyError("/hush/path"), "agent", "The agent failed with KeyError."),
    (AgentError("hush-token"), "agent", "The agent failed with AgentError."),
    (
        FileNotFoundError(2, "No such file", "/hush/x"),
        "agent",
        "The agent failed with FileNotFoundError.",
    ),
    (
        ExceptionGroup("hush", [AgentError("hush")]),
        "agent",
        "The agent failed with ExceptionGroup.",
    ),
]


@pytest.mark.parametrize(("error", "code", "message"), TABLE)
def test_an_error_is_a_code_and_a_sentence(error: Exception, code: ErrorCode, message: str) -> None:
    failure = explain(error)
    assert (failure.code, failure.message) == (code, message)


@pytest.mark.parametrize("error", [error for error, _, _ in TABLE])
def test_no_message_shows_a_path_or_a_secret(error: Exception) -> None:
    message = explain(error).message
    assert "hush" not in message
    assert "/" not in message
    assert "\n" not in message


def test_a_long_story_of_the_model_server_is_cut() -> None:
    failure = explain(refused(500, "x" * 100_000))
    assert len(failure.message) < MOST_CHARS + 50
