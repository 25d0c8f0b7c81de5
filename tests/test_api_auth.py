"""Who may ask."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio

from tests.serve_api import open_api
from tests.valkey import valkey_url

Headers = Any
"""Names and values, as text or bytes, which httpx' types do not mix."""

TOKEN = "sesame"  # of a test
BEARER = f"Bearer {TOKEN}".encode()
SHOWN: Headers = {"Authorization": BEARER}
FRIEND = "https://friend.example"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def open_door(valkey_folder: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """One for all tests here: nothing is left behind in it."""
    async with open_api(valkey_url(valkey_folder), CORS_ORIGINS=FRIEND) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(valkey_folder: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """The same behind a token."""
    url = valkey_url(valkey_folder)
    async with open_api(url, API_TOKEN=TOKEN, CORS_ORIGINS=FRIEND) as client:
        yield client


def origin_of(api: httpx.AsyncClient) -> str:
    return str(api.base_url).rstrip("/")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/queue", SHOWN, 200),
        ("/queue", {"Authorization": f"bearer {TOKEN}".encode()}, 200),
        ("/schema", SHOWN, 200),
        ("/nowhere", SHOWN, 404),
        ("/queue", {}, 401),
        ("/schema", {}, 401),
        ("/nowhere", {}, 401),
        ("/turns/x/events", {}, 401),
        ("/queue", {"Authorization": ""}, 401),
        ("/queue", {"Authorization": "Bearer"}, 401),
        ("/queue", {"Authorization": "Bearer x"}, 401),
        ("/queue", {"Authorization": TOKEN.encode()}, 401),
        ("/queue", {"Authorization": f"Basic {TOKEN}".encode()}, 401),
        ("/queue", {"Authorization": BEARER[:-1]}, 401),
        ("/queue", {"Authorization": BEARER + b"x"}, 401),
        ("/queue", {"Authorization": b"Bearer \xff\xfe"}, 401),
        ("/queue", {"Authorization": BEARER + "-ü".encode()}, 401),
        ("/queue", {"X-Token": TOKEN.encode()}, 401),
        ("/queue?token=sesame", {}, 401),
        ("/health/live", {}, 200),
        ("/health/ready", {}, 503),
    ],
)
async def test_the_token(
    guarded: httpx.AsyncClient, path: str, headers: Headers, status: int
) -> None:
    answer = await guarded.get(path, headers=headers)
    assert answer.status_code == status
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "unauthorized"


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (FRIEND, 200),
        ("https://FRIEND.example", 200),
        ("https://foe.example", 403),
        ("http://friend.example", 403),
        ("https://friend.example.foe.example", 403),
        ("https://friend.example:444", 403),
        ("null", 403),
        ("", 403),
        (b"\xff", 403),
        ("http://127.0.0.1:1", 403),
        ("http://localhost", 403),
    ],
)
async def test_a_page_of_another_site(
    open_door: httpx.AsyncClient, guarded: httpx.AsyncClient, origin: Any, status: int
) -> None:
    answer = await open_door.get("/queue", headers={"Origin": origin})
    assert answer.status_code == status
    behind_a_token = await guarded.get("/queue", headers=SHOWN | {"Origin": origin})
    assert behind_a_token.status_code == status
    if status == 403:
        assert answer.json()["code"] == "foreign_origin"


async def test_a_page_of_our_own(open_door: httpx.AsyncClient) -> None:
    origin = origin_of(open_door)
    assert (await open_door.get("/queue", headers={"Origin": origin})).status_code == 200
    named = {"Origin": "http://localhost", "Host": "localhost:80"}
    assert (await open_door.get("/queue", headers=named)).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:1234", 200),
        ("127.0.0.1", 200),
        ("127.8.9.1:80", 200),
        ("[::1]", 200),
        ("[::1]:8010", 200),
        ("foe.example", 403),
        ("foe.example:8010", 403),
        ("localhost.foe.example", 403),
        ("127.0.0.1.foe.example", 403),
        ("192.168.1.1", 403),
        ("[fe80::1]", 403),
        ("", 403),
    ],
)
async def test_a_name_that_is_not_ours(
    open_door: httpx.AsyncClient, guarded: httpx.AsyncClient, host: str, status: int
) -> None:
    answer = await open_door.get("/queue", headers={"Host": host})
    assert answer.status_code == status
    if host:
        assert (await guarded.get("/queue", headers=SHOWN | {"Host": host})).status_code == 200


@pytest.mark.parametrize(
    ("api_host", "host", "status"),
    [
        ("0.0.0.0", "192.168.1.1:8010", 200),
        ("0.0.0.0", "localhost", 200),
        ("0.0.0.0", "foe.example", 403),
        ("box.example", "BOX.example:8010", 200),
        ("box.example", "192.168.1.1", 403),
    ],
)
async def test_a_door_left_open_on_purpose(
    redis_url: str, api_host: str, host: str, status: int
) -> None:
    async with open_api(redis_url, API_HOST=api_host, API_ALLOW_OPEN=True) as api:
        assert (await api.get("/queue", headers={"Host": host})).status_code == status


async def test_http_1_0_knows_no_host(open_door: httpx.AsyncClient) -> None:
    url = urlsplit(str(open_door.base_url))
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(b"GET /health/live HTTP/1.0\r\n\r\n")
    assert (await reader.readline()).split()[1] == b"200"
    writer.close()
    await writer.wait_closed()


async def test_a_browser_asks_first_and_without_the_token(guarded: httpx.AsyncClient) -> None:
    asking = {
        "Origin": FRIEND,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,idempotency-key,last-event-id",
    }
    answer = await guarded.options("/turns", headers=asking)
    allowed = answer.headers["access-control-allow-headers"].lower()
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == FRIEND
    assert all(name in allowed for name in ("authorization", "idempotency-key", "last-event-id"))
    foreign = await guarded.options("/turns", headers={**asking, "Origin": "https://foe.example"})
    assert foreign.status_code == 403
    assert (await guarded.options("/turns")).status_code == 401


async def test_an_allowed_page_may_read_every_answer(guarded: httpx.AsyncClient) -> None:
    for headers in (SHOWN | {"Origin": FRIEND}, {"Origin": FRIEND}):
        answer = await guarded.get("/queue", headers=headers)
        assert answer.headers["access-control-allow-origin"] == FRIEND
    headers = SHOWN | {"Origin": FRIEND}
    posted = await guarded.post("/turns", json={"text": "Hi"}, headers=headers)
    assert "X-Turn-Id" in posted.headers["access-control-expose-headers"]


async def test_every_page_may_ask_where_the_setting_says_so(redis_url: str) -> None:
    async with open_api(redis_url, CORS_ORIGINS="*") as api:
        answer = await api.get("/queue", headers={"Origin": "https://anyone.example"})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "*"
