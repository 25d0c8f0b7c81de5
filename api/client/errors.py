"""Why a client got no answer.

TurnkeeperError
├── Unreachable          no connection
├── ConnectionBroken     a connection that ended before the answer did
├── Problem              the server refused
├── NotTurnkeeper        something else answers there
└── LostSight            a turn that goes on unseen
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

import httpx
import msgspec
from msgspec import Struct

from shared.errors import TurnkeeperError


class Unreachable(TurnkeeperError):
    """No connection was made, and so nothing was asked."""

    code = "unreachable"


class ConnectionBroken(TurnkeeperError):
    """The connection ended before the answer did; what was asked may have been done."""

    code = "connection_broken"


class Problem(TurnkeeperError):
    """The server's refusal, with its HTTP status."""

    def __init__(self, message: str, status: int, code: str = "") -> None:
        super().__init__(f"{message} ({code})" if code else message)
        self.status = status
        self.code = code or "problem"


class NotTurnkeeper(TurnkeeperError):
    """What was answered is not what this service answers."""

    code = "not_turnkeeper"


class LostSight(TurnkeeperError):
    """The server stayed away for too long; the turn itself goes on."""

    code = "lost_sight"


def public(address: httpx.URL) -> str:
    """The address without a password in it."""
    return str(address.copy_with(userinfo=b"")).rstrip("/")


@contextmanager
def connection_errors(address: httpx.URL) -> Generator[None]:
    """Turns httpx' errors into Unreachable and ConnectionBroken."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
        raise Unreachable(f"cannot reach {public(address)}: {_reason(error)}") from error
    except httpx.RequestError as error:
        reason = f"the connection to {public(address)} broke: {_reason(error)}"
        raise ConnectionBroken(reason) from error


async def check(response: httpx.Response, media_type: str) -> None:
    """Raises Problem for a refusal and NotTurnkeeper for another media type."""
    if not response.is_success:
        await response.aread()
        raise _problem(response)
    content_type = response.headers.get("Content-Type", "")
    if response.status_code != 204 and not content_type.startswith(media_type):
        raise foreign(response.url)


def foreign(address: httpx.URL) -> NotTurnkeeper:
    """The error for an answer that this service would not give."""
    return NotTurnkeeper(f"what answers at {public(address)} is not Turnkeeper")


class _ProblemDocument(Struct):
    title: str = ""
    detail: str = ""
    code: str = ""


def _problem(response: httpx.Response) -> Problem:
    status = response.status_code
    try:
        document = msgspec.json.decode(response.content, type=_ProblemDocument)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = _ProblemDocument()
    plain = f"{public(response.url)} answered {status} {response.reason_phrase}"
    return Problem(document.detail or document.title or plain, status, document.code)


def _reason(error: httpx.RequestError) -> str:
    system = _find_system_error(error)
    return os.strerror(system) if system else str(error) or type(error).__name__


def _find_system_error(error: BaseException | None) -> int | None:
    """The number of what went wrong below, of which httpx says no more than that it did."""
    if error is None:
        return None
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return error.errno
    if isinstance(error, BaseExceptionGroup):  # of several addresses none could be reached
        return _find_system_error(cast(BaseExceptionGroup[BaseException], error).exceptions[0])
    return _find_system_error(error.__cause__ or error.__context__)
