"""Every error as `application/problem+json` (RFC 9457)."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from msgspec import Struct

from api.errors import RETRY_AFTER_S, STATUS, Detailed, NothingLeft, TooLarge
from shared.errors import QueueFull, TurnkeeperError

MEDIA_TYPE = "application/problem+json"

logger = logging.getLogger(__name__)

AnyRequest = Request[Any, Any, Any]


class Problem(Struct, frozen=True, kw_only=True):
    """What went wrong: `code` for programs, `detail` for people."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str


def describe_problem(status: int, code: str, detail: str) -> Problem:
    """A problem with its status' own title."""
    return Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, code=code)


def problem_response(
    status: int,
    code: str,
    detail: str,
    *,
    headers: dict[str, str] | None = None,
    members: dict[str, Any] | None = None,
) -> Response[bytes]:
    """A problem as an answer; `members` are what this kind of problem adds to it."""
    problem = msgspec.to_builtins(describe_problem(status, code, detail))
    return Response(
        msgspec.json.encode({**problem, **(members or {})}),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )


def _answer_ours(_: AnyRequest, error: TurnkeeperError) -> Response[bytes]:
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), None)
    if status is None:
        return _answer_unexpected(_, error)
    headers = {"Retry-After": str(RETRY_AFTER_S)} if isinstance(error, QueueFull) else None
    members = error.members if isinstance(error, Detailed) else None
    return problem_response(status, error.code, str(error), headers=headers, members=members)


def _answer_http(_: AnyRequest, error: HTTPException) -> Response[bytes]:
    """Litestar's own errors: no such path, no such method and the like."""
    phrase = HTTPStatus(error.status_code).phrase
    return problem_response(
        error.status_code,
        phrase.lower().replace(" ", "_"),
        f"{phrase}.",
        headers=dict(error.headers or {}),
    )


def _answer_nothing_left(_: AnyRequest, __: NothingLeft) -> Response[None]:
    return Response(None, status_code=204)


def _answer_unexpected(request: AnyRequest, error: Exception) -> Response[bytes]:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem_response(500, "internal", "Something went wrong here; the log says what.")


def _answer_too_large(_: AnyRequest, __: RequestEntityTooLarge) -> Response[bytes]:
    return problem_response(413, TooLarge.code, "The body is too long.")


HANDLERS: dict[int | type[Exception], Callable[[AnyRequest, Any], Response[Any]]] = {
    TurnkeeperError: _answer_ours,
    HTTPException: _answer_http,
    RequestEntityTooLarge: _answer_too_large,
    NothingLeft: _answer_nothing_left,
    Exception: _answer_unexpected,
}
