"""The service as its clients use it, over HTTP."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import msgspec

from api.client.errors import check, connection_errors, foreign
from api.client.patience import Clock
from api.client.turn_stream import MEDIA_TYPE, TurnStream
from shared.characters import is_visible
from shared.errors import SettingsError
from shared.hosts import is_local

CONNECT_S = 10.0
SILENCE_S = 45.0
"""The server pings each 15 s; a connection on which nothing comes for this long is dead."""


class Answer(NamedTuple):
    """A JSON object, `raw` as it was received."""

    body: dict[str, Any]
    raw: str


class TurnkeeperClient:
    """Every method raises Unreachable, ConnectionBroken, Problem or NotTurnkeeper."""

    def __init__(self, http: httpx.Client, clock: Clock | None = None) -> None:
        self._http = http
        self._clock = clock or Clock()

    def ask(self, text: str, thread_id: str | None = None, agent: str | None = None) -> TurnStream:
        """A new turn, posted when it is first read, and once however often that is tried."""
        fields = {"text": text, "thread_id": thread_id, "agent": agent}
        post = self._http.build_request(
            "POST",
            "/turns/stream",
            # ASCII alone, so that the server is the judge of what is no Unicode.
            content=json.dumps(
                {name: value for name, value in fields.items() if value is not None}
            ),
            headers={
                "Accept": MEDIA_TYPE,
                "Content-Type": "application/json",
                "Idempotency-Key": str(uuid4()),
            },
        )
        return TurnStream(self._http, self._clock, post=post)

    def follow(self, turn_id: str, after: int = 0) -> TurnStream:
        """The turn's chunks after that number, those to come included."""
        return TurnStream(self._http, self._clock, turn_id=turn_id, after=after)

    def queue(self) -> Answer:
        """The running turn and those that wait."""
        return self._get("/queue")

    def status(self) -> Answer:
        """The state of model, worker and Redis."""
        return self._get("/status")

    def _get(self, path: str) -> Answer:
        with connection_errors(self._http.base_url):
            response = self._http.get(path)
        check(response, "application/json")
        try:
            return Answer(msgspec.json.decode(response.content, type=dict[str, Any]), response.text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise foreign(response.url) from None


@contextmanager
def open_client(
    url: str, token: str = "", *, clock: Clock | None = None, silence_s: float = SILENCE_S
) -> Generator[TurnkeeperClient]:
    """A client of the service at `url`; raises SettingsError when it cannot be one."""
    address = _parse_address(url)
    with httpx.Client(
        base_url=address,
        headers=_authorize(token),
        timeout=httpx.Timeout(silence_s, connect=CONNECT_S),
        trust_env=not is_local(url),
    ) as http:
        yield TurnkeeperClient(http, clock)


def _parse_address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SettingsError(f"TURNKEEPER_URL: {error}") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise SettingsError("TURNKEEPER_URL: must be of the form http://host:port")
    return address


def _authorize(token: str) -> dict[str, str]:
    if not token:
        return {}
    if not is_visible(token):
        raise SettingsError("API_TOKEN: must be made of visible ASCII characters")
    return {"Authorization": f"Bearer {token}"}
