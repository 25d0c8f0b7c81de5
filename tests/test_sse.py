"""The bytes of server-sent events."""

from collections.abc import AsyncGenerator

import anyio
import pytest
from starlette.types import Message, Send

from api.sse import (
    GOODBYE,
    TURN_EVENTS,
    Dialect,
    encode_event,
    respond_with_events,
    write_events,
)
from shared import chunks
from shared.chunks import Source, Text
from shared.stream import Entry

QUEUED = Entry(1, "queued", b'{"type":"queued"}')
DONE = Entry(2, "done", b'{"type":"done"}')


async def entries(*given: Entry) -> AsyncGenerator[Entry]:
    for entry in given:
        yield entry


async def written(*given: Entry, dialect: Dialect = TURN_EVENTS) -> list[bytes]:
    return [event async for event in write_events(entries(*given), dialect)]


async def test_each_chunk_is_one_event_and_the_first_says_when_to_retry() -> None:
    assert await written(QUEUED, DONE) == [
        b'retry: 2000\nid: 1\nevent: queued\ndata: {"seq":1,"type":"queued"}\n\n',
        b'id: 2\nevent: done\ndata: {"seq":2,"type":"done"}\n\n',
    ]


async def test_nothing_follows_the_terminal_chunk() -> None:
    assert len(await written(DONE, QUEUED)) == 1


async def test_a_stream_without_its_end_says_goodbye() -> None:
    assert (await written(QUEUED))[-1] == GOODBYE


async def test_a_dialect_has_its_own_ids_and_end() -> None:
    def name(entry: Entry) -> str:
        return f"run-{entry.seq}"

    def is_queued(entry: Entry) -> bool:
        return entry.type == "queued"

    dialect = TURN_EVENTS._replace(event_id=name, is_last=is_queued)
    [event] = await written(QUEUED, DONE, dialect=dialect)
    assert b"\nid: run-1\n" in event


@pytest.mark.parametrize(
    "text", ["plain", "a\nb", "a\rb", "a\r\nb", "\u2028\u0085", "\0", "ü 🌊", "data: x\n\n"]
)
def test_every_text_comes_through(text: str) -> None:
    chunk = Text(turn_id="t", content=text, metadata=Source("m"))
    event = encode_event("7", "text", chunks.frame(7, chunks.encode(chunk)))
    assert chunks.parse(decode(event)) == (7, chunk)


def decode(event: bytes) -> str:
    """The data of an event that has one line of it."""
    id_line, type_line, data_line, *rest = event.decode().split("\n")
    assert (id_line, type_line, rest) == ("id: 7", "event: text", ["", ""])
    return data_line.removeprefix("data: ")


async def test_an_abandoned_stream_lets_its_source_go() -> None:
    left: list[bool] = []

    async def source() -> AsyncGenerator[Entry]:
        try:
            yield QUEUED
            yield QUEUED
        finally:
            left.append(True)

    events = write_events(source())
    await anext(events)
    await events.aclose()
    assert left == [True]


async def nothing() -> Message:
    await anyio.sleep_forever()
    raise AssertionError


def stalled() -> Send:
    """A connection that takes the headers and nothing more."""

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await anyio.sleep_forever()

    return send


async def test_a_client_that_stops_reading_is_cut_quietly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("api.sse.SEND_TIMEOUT_S", 0.05)
    response = respond_with_events(entries(QUEUED, DONE), anyio.Event())
    with caplog.at_level("INFO", logger="api.sse"):
        await response({"type": "http", "method": "GET"}, nothing, stalled())
    assert [record.levelname for record in caplog.records] == ["INFO"]
