"""Who may ask: the bearer token, and the pages and names that a browser may come from."""

import hmac
from typing import NamedTuple

from litestar import Request, Response
from litestar.config.cors import CORSConfig
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from api.problems import problem_response
from api.settings import ApiSettings
from shared.hosts import WILDCARDS, host_name, is_address, is_loopback

OPEN_PATHS = "/health/"
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class _Headers(NamedTuple):
    """The headers that decide, each as often as it was sent."""

    authorization: list[bytes]
    host: list[str]
    origin: list[str]
    preflight: bool


class Guard:
    """Stands before the application, so that it covers every path, known or not."""

    def __init__(self, app: ASGIApp, settings: ApiSettings, cors: CORSConfig | None) -> None:
        self._app = app
        self._token = settings.token
        self._host = settings.API_HOST
        self._cors = cors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request that may not pass itself; passes on what is not HTTP."""
        refusal = self._refuse(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            answer = refusal.to_asgi_response(  # pyright: ignore[reportUnknownMemberType]
                app=None, request=Request(scope)
            )
            await answer(scope, receive, send)

    def _refuse(self, scope: HTTPScope) -> Response[bytes] | None:
        headers = _read_headers(scope)
        if not all(self._knows_origin(origin, headers.host) for origin in headers.origin):
            return problem_response(403, "foreign_origin", "This origin may not ask.")
        if self._token is None:
            if not all(self._knows_host(host_name(host)) for host in headers.host):
                return problem_response(403, "foreign_host", "This is not the name of this host.")
        elif not (self._is_open(scope, headers) or any(map(self._is_token, headers.authorization))):
            return self._ask_for_token(headers.origin)
        return None

    def _is_open(self, scope: HTTPScope, headers: _Headers) -> bool:
        return scope["path"].startswith(OPEN_PATHS) or (bool(self._cors) and headers.preflight)

    def _knows_origin(self, origin: str, hosts: list[str]) -> bool:
        if self._cors and self._cors.is_origin_allowed(origin):
            return True
        return any(_same_origin(origin, host) for host in hosts)

    def _knows_host(self, name: str) -> bool:
        if self._host in WILDCARDS and is_address(name):
            return True
        return name == self._host or is_loopback(name)

    def _is_token(self, authorization: bytes) -> bool:
        scheme, _, token = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(
            token.strip(), self._token or b""
        )

    def _ask_for_token(self, origins: list[str]) -> Response[bytes]:
        headers = {"WWW-Authenticate": "Bearer"}
        if self._cors and origins:
            # Lets the page of an allowed origin read why it was refused.
            headers |= {"Access-Control-Allow-Origin": origins[0], "Vary": "Origin"}
        return problem_response(
            401,
            "unauthorized",
            "Send the header Authorization: Bearer with the API's token.",
            headers=headers,
        )


def _read_headers(scope: HTTPScope) -> _Headers:
    def values(name: bytes) -> list[bytes]:
        return [value for key, value in scope["headers"] if key == name]

    origins = values(b"origin")
    return _Headers(
        values(b"authorization"),
        [host.decode("latin-1").lower() for host in values(b"host")],
        [origin.decode("latin-1").lower() for origin in origins],
        preflight=scope["method"] == "OPTIONS"
        and bool(origins and values(b"access-control-request-method")),
    )


def _same_origin(origin: str, host: str) -> bool:
    """Compared without the scheme, which a proxy in between may have changed."""
    scheme, _, authority = origin.partition("://")
    port = DEFAULT_PORTS.get(scheme)
    return port is not None and authority.removesuffix(port) == host.removesuffix(port)
