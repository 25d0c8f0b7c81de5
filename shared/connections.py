"""Connections to Redis that wait for nothing without a limit."""

import socket
import sys
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar, cast

from redis._parsers import base, hiredis
from redis.asyncio import Connection, ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

if sys.version_info < (3, 11, 3):
    # There an asyncio.timeout that expires in a task that was cancelled raises CancelledError.
    # May go with Python 3.11.2, which Debian 12 has.
    from async_timeout import timeout
else:
    from asyncio import timeout

CONNECT_S = 2.0
READ_S = 5.0
"""A Redis that has not answered by then, or has not taken what it was sent, is away."""

CLOSED = "the handler is closed"
"""uvloop's word for a line that was just closed, in a RuntimeError; no other loop says it so."""

T = TypeVar("T")


class _Patient(AbstractConnection):
    """Gives up after `patience_s`, and with it the connection: a late answer reaches nobody.

    Not by redis-py's own `socket_timeout`, whose asyncio.wait_for loses a cancellation below
    Python 3.12.
    """

    def __init__(self, *, patience_s: float, **options: Any) -> None:
        cast(Any, super()).__init__(**options)
        self._patience_s = patience_s

    async def send_packed_command(self, *args: Any, **options: Any) -> None:
        try:
            await _within(self._patience_s, super().send_packed_command(*args, **options))
        except RuntimeError as error:
            if CLOSED not in str(error):
                raise
            raise RedisConnectionError("The connection is closed.") from error

    async def read_response(self, *args: Any, **options: Any) -> Any:
        response = cast(Any, super()).read_response(*args, **options)
        # A subscription's reads have a limit of their own, after which the connection is kept.
        return await (response if options.get("timeout") else _within(self._patience_s, response))


class _PatientTcp(_Patient, Connection):
    pass


class _PatientTls(_Patient, SSLConnection):
    pass


class _PatientUnix(_Patient, UnixDomainSocketConnection):
    pass


PATIENT: Mapping[type[AbstractConnection], type[_Patient]] = {
    Connection: _PatientTcp,
    SSLConnection: _PatientTls,
    UnixDomainSocketConnection: _PatientUnix,
}


class Pool(ConnectionPool):
    """Connections made when they are needed, each of which gives up after `patience_s`."""

    def __init__(
        self,
        connection_class: type[AbstractConnection] = Connection,
        *,
        patience_s: float,
        **options: Any,
    ) -> None:
        patient = PATIENT[connection_class]
        cast(Any, super()).__init__(patient, patience_s=patience_s, **options)
        self.patience_s = patience_s

    async def get_connection(self, *args: Any, **options: Any) -> Any:
        """One that is connected; they are made one at a time, so this too has a limit."""
        return await _within(self.patience_s, cast(Any, super()).get_connection(*args, **options))


async def _within(seconds: float, awaited: Awaitable[T]) -> T:
    """What is awaited; redis-py's own error when it takes longer."""
    try:
        async with timeout(seconds):
            return await awaited
    except TimeoutError:
        raise RedisTimeoutError(f"No answer within {seconds:g} s") from None


def connection_pool(url: str, patience_s: float = READ_S) -> Pool:
    """Raises ValueError when the URL cannot be used."""
    _mend_timeouts()
    keepalive = _keepalive(patience_s) if not url.startswith("unix:") else {}
    pool = cast(Any, Pool)
    return pool.from_url(url, patience_s=patience_s, socket_connect_timeout=CONNECT_S, **keepalive)


def _keepalive(patience_s: float) -> dict[str, Any]:
    """What was sent into a dead line is not to arrive minutes later, after what came after it."""
    options: dict[int, int] = {}
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        options = {socket.TCP_USER_TIMEOUT: round(patience_s * 1000)}
    return {"socket_keepalive": True, "socket_keepalive_options": options}


def _mend_timeouts() -> None:
    """Lets a cancelled task use connections, to clean up, below Python 3.11.3 too.

    redis-py 5.3 takes the other `timeout` there, except in its parsers.
    """
    if sys.version_info < (3, 11, 3):
        for parser in (hiredis, base):
            cast(Any, parser).async_timeout = timeout
