"""One turn's chunks as a client reads them, over as many connections as it takes."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from urllib.parse import quote

import httpx
import msgspec
from httpx_sse import EventSource
from msgspec import Struct

from api.client.errors import (
    ConnectionBroken,
    LostSight,
    Problem,
    Unreachable,
    check,
    connection_errors,
    foreign,
    public,
)
from api.client.event import Event, parse_event
from api.client.patience import Clock, Patience

EVENTS = "text/event-stream"
JSON = "application/json"

Failure = ConnectionBroken | Unreachable | Problem


class _Turn(Struct):
    turn_id: str
    thread_id: str


def ignore(_notice: str) -> None:
    """Tells nobody."""


def turn_path(turn_id: str) -> str:
    """Where the turn is found, whatever was typed for its id."""
    return f"/turns/{quote(turn_id, safe='', errors='replace')}"


class TurnStream:
    """A turn that is followed from the chunk after `last_seq`; without an id, `post` makes it.

    `turn_id` and `thread_id` are empty until the server has said them; `accepted` is set then.
    `sought`: a turn that may have been accepted must be found, because it is to be cancelled.
    `cancelled`: the server has stored that.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        clock: Clock,
        *,
        turn_id: str = "",
        after: int = 0,
        post: httpx.Request | None = None,
    ) -> None:
        self.turn_id = turn_id
        self.thread_id = ""
        self.last_seq = after
        self.accepted = asyncio.Event()
        self.sought = False
        self.cancelled = False
        self._http = http
        self._post = post
        self._patience = Patience(clock)
        self._begun = False
        self._ended = False

    async def read(self, tell: Callable[[str], None] = ignore) -> AsyncGenerator[Event]:
        """Each chunk once and in order, to the turn's end; `tell` hears of each broken connection.

        Raises Unreachable, Problem, NotTurnkeeper and LostSight.
        """
        while not self._ended:
            try:
                async with aclosing(self._read_connection()) as events:
                    async for event in events:
                        yield event
            except (ConnectionBroken, Unreachable, Problem) as error:
                await self._bear(error, tell)

    @property
    def whereabouts(self) -> str:
        """What became of the turn, for somebody who leaves it, and where it is seen again."""
        if not self.turn_id:
            return "the turn may have been accepted; see turnkeeper queue"
        if self.cancelled:
            fate = "the turn is being cancelled"
        else:
            fate = "the turn may go on" if self.sought else "the turn goes on"
        return f"{fate}; follow it with: turnkeeper follow {self.turn_id}"

    async def _read_connection(self) -> AsyncGenerator[Event]:
        request = self._request()
        with connection_errors(self._http.base_url):
            async with aclosing(await self._http.send(request, stream=True)) as response:
                await check(response, request.headers["Accept"])
                await self._accept(response)
                if request.headers["Accept"] == JSON:
                    return
                try:
                    async with aclosing(self._new_events(EventSource(response))) as events:
                        async for event in events:
                            yield event
                finally:
                    if response.num_bytes_downloaded:
                        self._patience.see_life()
        if not self._ended:
            raise ConnectionBroken(f"the stream of {public(self._http.base_url)} ended early")

    def _request(self) -> httpx.Request:
        if self._post and not self.turn_id:
            return self._post
        headers = {"Accept": EVENTS}
        if self.last_seq:
            headers["Last-Event-ID"] = str(self.last_seq)
        return self._http.build_request("GET", f"{turn_path(self.turn_id)}/events", headers=headers)

    async def _accept(self, response: httpx.Response) -> None:
        """Learns from the server's answer which turn it is."""
        self._begun = True
        self._ended = response.status_code == 204
        said = await _read_head(response)
        self.turn_id = self.turn_id or said.turn_id
        self.thread_id = self.thread_id or said.thread_id
        if not self.turn_id:
            raise foreign(response.url)
        self.accepted.set()

    async def _new_events(self, source: EventSource) -> AsyncGenerator[Event]:
        if self._ended:
            return
        async with aclosing(source.aiter_sse()) as received:
            async for sse in received:
                if sse.retry is not None:
                    self._patience.set_pace(sse.retry)
                if not sse.data or (event := parse_event(sse.data)).seq <= self.last_seq:
                    continue
                self._patience.see_progress()
                self.last_seq, self._ended = event.seq, event.completed
                yield event
                if self._ended:
                    return

    async def _bear(self, error: Failure, tell: Callable[[str], None]) -> None:
        if self._is_final(error):
            raise error
        self._begun = True
        if not self._patience.tried:
            tell(f"{error}; trying again")
        if not await self._patience.wait():
            raise LostSight(f"{error}; {self.whereabouts}") from error

    def _is_final(self, error: Failure) -> bool:
        if isinstance(error, Problem) and error.status < 500:
            return True
        if self._begun or isinstance(error, ConnectionBroken):
            return False
        # A server in trouble may have accepted the turn all the same; one not reached has not.
        return not (self.sought and isinstance(error, Problem))


async def _read_head(response: httpx.Response) -> _Turn:
    """The turn of an answer: in its headers before a stream, or the answer itself."""
    if not response.headers.get("Content-Type", "").startswith(JSON):
        headers = response.headers
        return _Turn(headers.get("X-Turn-Id", ""), headers.get("X-Thread-Id", ""))
    try:
        return msgspec.json.decode(await response.aread(), type=_Turn)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise foreign(response.url) from None
