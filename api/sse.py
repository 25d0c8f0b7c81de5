"""Server-sent events: the bytes, and the answer that sends them."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import NamedTuple

import anyio
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.types import Receive, Scope, Send

from shared.chunks import frame
from shared.stream import Entry

RETRY_MS = 2000
GOODBYE = b": goodbye\n\n"

SEND_TIMEOUT_S = 30.0
"""How long a client may leave what was sent to it unread."""
GRACE_S = 3.0
"""What a stream gets to say goodbye; less than the server's own patience at its end."""

logger = logging.getLogger(__name__)


class Dialect(NamedTuple):
    """What differs from one kind of client to another: event ids, the last event and pings."""

    event_id: Callable[[Entry], str]
    is_last: Callable[[Entry], bool]
    ping: str
    ping_s: float


def _number(entry: Entry) -> str:
    return str(entry.seq)


def _is_terminal(entry: Entry) -> bool:
    return entry.terminal


TURN_EVENTS = Dialect(event_id=_number, is_last=_is_terminal, ping="ping", ping_s=10.0)


class EventStream(EventSourceResponse):
    """A stream that ends quietly when its client has stopped reading."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the stream."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            logger.info("A client has stopped reading; its stream was cut.")


def encode_event(event_id: str, kind: str, data: bytes) -> bytes:
    """One event; `data` is JSON, which has no line breaks of its own."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event_id.encode(), kind.encode(), data)


async def write_events(
    entries: AsyncGenerator[Entry], dialect: Dialect = TURN_EVENTS
) -> AsyncGenerator[bytes]:
    """The chunks as events, the first with `retry`, and a goodbye if the last one is not there."""
    head = b"retry: %d\n" % RETRY_MS
    async with aclosing(entries):
        async for entry in entries:
            data = frame(entry.seq, entry.body)
            yield head + encode_event(dialect.event_id(entry), entry.type, data)
            if dialect.is_last(entry):
                return
            head = b""
    yield GOODBYE


def respond_with_events(
    entries: AsyncGenerator[Entry],
    farewell: anyio.Event,
    headers: Mapping[str, str] | None = None,
    dialect: Dialect = TURN_EVENTS,
) -> EventSourceResponse:
    """The answer that sends `entries`; `farewell` is set when the server is about to stop."""
    return EventStream(
        write_events(entries, dialect),
        headers=headers,
        ping=dialect.ping_s,
        ping_message_factory=lambda: ServerSentEvent(comment=dialect.ping, sep="\n"),
        send_timeout=SEND_TIMEOUT_S,
        shutdown_event=farewell,
        shutdown_grace_period=GRACE_S,
    )
