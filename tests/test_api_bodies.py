"""What a body may not be, and how that is said."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest

from api.bodies import MAX_BODY_BYTES, MAX_TEXT_BYTES, digest, parse_turn
from tests.serve_api import open_api

BAD = {
    "empty": (b"", 400),
    "cut": (b'{"text": "Hi"', 400),
    "two values": (b'{"text": "Hi"} {}', 400),
    "latin-1": ('{"text": "ü"}'.encode("latin-1"), 400),
    "byte order mark": (b'\xef\xbb\xbf{"text": "Hi"}', 400),
    "encoded surrogate": (b'{"text": "\xed\xa0\x80"}', 400),
    "control character": (b'{"text": "a\nb"}', 400),
    "NaN": (b'{"input": {"n": NaN}}', 400),
    "Infinity": (b'{"input": {"n": -Infinity}}', 400),
    "deep lists": (b'{"input": {"n": ' + b"[" * 50_000 + b"]" * 50_000 + b"}}", 400),
    "deep objects": (b'{"input": ' + b'{"n":' * 120 + b"1" + b"}" * 120 + b"}", 400),
    "long integer": (b'{"input": {"n": ' + b"9" * 5000 + b"}}", 400),
    "huge float": (b'{"input": {"n": 1e400}}', 422),
    "list": (b"[]", 422),
    "string": (b'"text"', 422),
    "null": (b"null", 422),
    "nothing asked": (b"{}", 422),
    "both": (b'{"text": "Hi", "input": {}}', 422),
    "neither, by null": (b'{"text": null, "input": null}', 422),
    "empty text": (b'{"text": ""}', 422),
    "blank text": (b'{"text": " \\n\\u2003"}', 422),
    "text is a number": (b'{"text": 1}', 422),
    "text is a list": (b'{"text": ["Hi"]}', 422),
    "input is a list": (b'{"input": []}', 422),
    "input is a string": (b'{"input": "Hi"}', 422),
    "unknown member": (b'{"text": "Hi", "colour": "red"}', 422),
    "unknown member, null": (b'{"text": "Hi", "colour": null}', 422),
    "surrogate in text": (b'{"text": "\\ud800"}', 422),
    "surrogate in a key": (b'{"input": {"\\udfff": 1}}', 422),
    "surrogate in an unknown member": (b'{"text": "Hi", "\\ud800": 1}', 422),
    "surrogate deep inside": (b'{"input": {"a": [{"b": "x\\ud83d"}]}}', 422),
    "unknown agent": (b'{"text": "Hi", "agent": "nobody"}', 422),
    "empty agent": (b'{"text": "Hi", "agent": ""}', 422),
    "agent is a number": (b'{"text": "Hi", "agent": 1}', 422),
    "input for chat": (b'{"input": {}, "agent": "chat"}', 422),
    "input for the default": (b'{"input": {}}', 422),
    "empty thread": (b'{"text": "Hi", "thread_id": ""}', 422),
    "long thread": (b'{"text": "Hi", "thread_id": "' + b"a" * 129 + b'"}', 422),
    "thread with a dot": (b'{"text": "Hi", "thread_id": "a.b"}', 422),
    "thread with a line": (b'{"text": "Hi", "thread_id": "a\\n"}', 422),
    "thread with an accent": ('{"text": "Hi", "thread_id": "é"}'.encode(), 422),
    "thread with other digits": ('{"text": "Hi", "thread_id": "٣"}'.encode(), 422),
    "thread is a number": (b'{"text": "Hi", "thread_id": 7}', 422),
    "long text": (b'{"text": "' + b"a" * (MAX_TEXT_BYTES + 1) + b'"}', 413),
    "long text in bytes": (f'{{"text": "{"ü" * 32_769}"}}'.encode(), 413),
    "long body": (b'{"text": "Hi"' + b" " * MAX_BODY_BYTES + b"}", 413),
}

GOOD = {
    "longest text": b'{"text": "' + b"a" * MAX_TEXT_BYTES + b'"}',
    "text with space around it": b'{"text": "' + b" " * MAX_TEXT_BYTES + b'a"}',
    "longest body": b'{"text": "Hi"'.ljust(MAX_BODY_BYTES - 1) + b"}",
    "a pair of surrogates": b'{"text": "\\ud83c\\udf0a"}',
    "the last of two": b'{"text": 1, "text": "Hi"}',
    "nulls": b'{"text": "Hi", "input": null, "thread_id": null, "agent": null}',
    "longest thread": b'{"text": "Hi", "thread_id": "' + b"a" * 128 + b'"}',
    "an object": b'{"input": {}, "agent": "other"}',
}


@pytest.fixture
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(redis_url, AGENTS="other=their.package:build") as client:
        yield client


@pytest.mark.parametrize("path", ["/turns", "/turns/stream"])
async def test_a_bad_body_is_a_problem(api: httpx.AsyncClient, path: str) -> None:
    wrong: dict[str, int] = {}
    for name, (body, status) in BAD.items():
        answer = await api.post(path, content=body)
        assert answer.headers["content-type"] == "application/problem+json", name
        assert answer.json()["status"] == answer.status_code
        if answer.status_code != status:
            wrong[name] = answer.status_code
    assert not wrong
    assert (await api.get("/queue")).json()["depth"] == 0


@pytest.mark.parametrize("name", GOOD)
async def test_a_good_body_is_taken_whatever_it_calls_itself(
    api: httpx.AsyncClient, name: str
) -> None:
    answer = await api.post("/turns", content=GOOD[name], headers={"Content-Type": "text/plain"})
    assert answer.status_code == 202


async def test_a_body_without_a_length_is_counted(api: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 4096 + 1):
            yield b" " * 4096

    answer = await api.post("/turns", content=endless())
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_a_length_is_believed_when_it_is_too_much(api: httpx.AsyncClient) -> None:
    """The answer comes before the body, which never does."""
    url = urlsplit(str(api.base_url))
    head = (
        f"POST /turns HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MAX_BODY_BYTES + 1}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(head.encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    writer.close()
    await writer.wait_closed()


def test_text_is_stripped() -> None:
    assert parse_turn(b'{"text": "\\t a b \\n"}').text == "a b"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"text":"a","agent":"b"}', b'{ "agent": "b", "text": "\\u0061" }', True),
        (b'{"text":"a"}', b'{"text":"a","agent":null}', True),
        (b'{"text":"a"}', b'{"text":"b"}', False),
        (b'{"text":"a"}', b'{"text":"a","thread_id":"t"}', False),
        (b'{"input":{"a":1}}', b'{"input":{"a":"1"}}', False),
    ],
)
def test_a_digest_tells_requests_apart_not_spellings(one: bytes, other: bytes, same: bool) -> None:
    assert (digest(parse_turn(one)) == digest(parse_turn(other))) is same
