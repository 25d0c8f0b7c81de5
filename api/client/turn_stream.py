"""One turn's chunks as a client reads them, over as many connections as it takes."""

from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import quote

import httpx
from httpx_sse import EventSource

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

MEDIA_TYPE = "text/event-stream"

Failure = ConnectionBroken | Unreachable | Problem


def ignore(_notice: str) -> None:
    """Tells nobody."""


class TurnStream:
    """A turn that is followed from the chunk after `last_seq`; without an id, `post` makes it.

    `turn_id` and `thread_id` are empty until the server has said them.
    """

    def __init__(
        self,
        http: httpx.Client,
        clock: Clock,
        *,
        turn_id: str = "",
        after: int = 0,
        post: httpx.Request | None = None,
    ) -> None:
        self.turn_id = turn_id
        self.thread_id = ""
        self.last_seq = after
        self._http = http
        self._post = post
        self._patience = Patience(clock)
        self._begun = False
        self._ended = False

    def read(self, tell: Callable[[str], None] = ignore) -> Iterator[Event]:
        """Each chunk once and in order, to the turn's end; `tell` hears of each broken connection.

        Raises Unreachable, Problem, NotTurnkeeper and LostSight.
        """
        while not self._ended:
            try:
                yield from self._read_connection()
            except (ConnectionBroken, Unreachable, Problem) as error:
                self._bear(error, tell)

    def _read_connection(self) -> Iterator[Event]:
        with (
            connection_errors(self._http.base_url),
            closing(self._http.send(self._request(), stream=True)) as response,
        ):
            self._accept(response)
            try:
                yield from self._new_events(EventSource(response))
            finally:
                if response.num_bytes_downloaded:
                    self._patience.see_life()
        if not self._ended:
            raise ConnectionBroken(f"the stream of {public(self._http.base_url)} ended early")

    def _request(self) -> httpx.Request:
        if self._post and not self.turn_id:
            return self._post
        path = f"/turns/{quote(self.turn_id, safe='', errors='replace')}/events"
        headers = {"Accept": MEDIA_TYPE}
        if self.last_seq:
            headers["Last-Event-ID"] = str(self.last_seq)
        return self._http.build_request("GET", path, headers=headers)

    def _accept(self, response: httpx.Response) -> None:
        check(response, MEDIA_TYPE)
        self._begun = True
        self._ended = response.status_code == 204
        self.turn_id = self.turn_id or response.headers.get("X-Turn-Id", "")
        self.thread_id = self.thread_id or response.headers.get("X-Thread-Id", "")
        if not self.turn_id:
            raise foreign(response.url)

    def _new_events(self, source: EventSource) -> Iterator[Event]:
        for sse in source.iter_sse() if not self._ended else ():
            if sse.retry is not None:
                self._patience.set_pace(sse.retry)
            if not sse.data or (event := parse_event(sse.data)).seq <= self.last_seq:
                continue
            self._patience.see_progress()
            self.last_seq, self._ended = event.seq, event.completed
            yield event
            if self._ended:
                return

    def _bear(self, error: Failure, tell: Callable[[str], None]) -> None:
        refused = isinstance(error, Problem) and error.status < 500
        if refused or not (self._begun or isinstance(error, ConnectionBroken)):
            raise error
        self._begun = True
        if not self._patience.tried:
            tell(f"{error}; trying again")
        if not self._patience.wait():
            raise LostSight(self._farewell(error)) from error

    def _farewell(self, error: Failure) -> str:
        if not self.turn_id:
            return f"{error}; the turn may be in the queue all the same: turnkeeper queue"
        return f"{error}; the turn goes on, follow it later: turnkeeper follow {self.turn_id}"
