"""The service as its clients use it, over HTTP."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import msgspec

from api.client.errors import check, connection_errors, foreign
from api.client.patience import Clock
from api.client.turn_stream import EVENTS, JSON, TurnStream, turn_path
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

    def __init__(self, http: httpx.AsyncClient, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self._http = http

    def ask(self, text: str, thread_id: str | None = None, agent: str | None = None) -> TurnStream:
        """A new turn, posted when it is first read, and once however often that is tried."""
        fields = {"text": text, "thread_id": thread_id, "agent": agent}
        # ASCII alone, so that the server is the judge of what is no Unicode.
        body = json.dumps({name: value for name, value in fields.items() if value is not None})
        return self._begin("/turns/stream", EVENTS, body)

    def retry(self, turn_id: str) -> TurnStream:
        """A new turn with the input of that one, posted as `ask` does."""
        return self._begin(f"{turn_path(turn_id)}/retry", JSON)

    def follow(self, turn_id: str, after: int = 0) -> TurnStream:
        """The turn's chunks after that number, those to come included."""
        return TurnStream(self._http, self.clock, turn_id=turn_id, after=after)

    async def cancel(self, turn_id: str) -> Answer:
        """The turn as it is when its cancel is stored."""
        return await self._ask("POST", f"{turn_path(turn_id)}/cancel")

    async def queue(self) -> Answer:
        """The running turn and those that wait."""
        return await self._ask("GET", "/queue")

    async def status(self) -> Answer:
        """The state of model, worker and Redis."""
        return await self._ask("GET", "/status")

    def _begin(self, path: str, accept: str, body: str | None = None) -> TurnStream:
        headers = {"Accept": accept, "Content-Type": JSON, "Idempotency-Key": str(uuid4())}
        post = self._http.build_request("POST", path, content=body, headers=headers)
        return TurnStream(self._http, self.clock, post=post)

    async def _ask(self, method: str, path: str) -> Answer:
        with connection_errors(self._http.base_url):
            response = await self._http.request(method, path)
        await check(response, JSON)
        try:
            return Answer(msgspec.json.decode(response.content, type=dict[str, Any]), response.text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise foreign(response.url) from None


@asynccontextmanager
async def open_client(
    url: str, token: str = "", *, clock: Clock | None = None, silence_s: float = SILENCE_S
) -> AsyncGenerator[TurnkeeperClient]:
    """A client of the service at `url`; raises SettingsError when it cannot be one."""
    address = _parse_address(url)
    async with httpx.AsyncClient(
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
