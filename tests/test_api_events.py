"""A turn's stream over HTTP."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from httpx_sse import ServerSentEvent, aconnect_sse

from api.settings import ApiSettings
from shared import chunks, keys
from shared.redis import Redis
from tests.redis_seen import RedisSeen
from tests.serve_api import open_api, serve_api
from tests.turn_driver import TurnDriver

CHUNKS = 300


@pytest.fixture
async def api(redis_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with open_api(redis_url) as client:
        yield client


@pytest.fixture
def driver(redis: Redis) -> TurnDriver:
    return TurnDriver(redis)


async def events(
    api: httpx.AsyncClient, turn_id: str, after: int = 0
) -> AsyncGenerator[ServerSentEvent]:
    headers = {"Last-Event-ID": str(after)}
    path = f"/turns/{turn_id}/events"
    async with (
        aconnect_sse(api, "GET", path, headers=headers) as source,
        aclosing(source.aiter_sse()) as received,
    ):
        async for event in received:
            yield event


async def numbers(api: httpx.AsyncClient, turn_id: str, after: int = 0) -> list[int]:
    return [int(event.id) async for event in events(api, turn_id, after)]


async def test_a_stream_byte_by_byte(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    await driver.run(turn_id)
    answer = await api.get(f"/turns/{turn_id}/events")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in answer.headers
    first, second, third, rest = answer.content.split(b"\n\n")
    assert first.startswith(b'retry: 2000\nid: 1\nevent: queued\ndata: {"seq":1,')
    assert second.startswith(b'id: 2\nevent: text\ndata: {"seq":2,')
    assert third.startswith(b'id: 3\nevent: done\ndata: {"seq":3,')
    assert rest == b""


async def test_every_event_is_a_chunk_of_the_turn(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    turn_id = await driver.queue()
    await driver.run(turn_id, 3)
    async for event in events(api, turn_id):
        seq, chunk = chunks.parse(event.data)
        assert (str(seq), chunks.type_of(chunk)) == (event.id, event.event)
        assert chunk.turn_id == turn_id
        assert chunk.completed is (event.event == "done")


async def follow_in_pieces(api: httpx.AsyncClient, turn_id: str, dice: random.Random) -> list[int]:
    """Reads a random number of events, drops the connection, resumes, until the end."""
    await asyncio.sleep(dice.random() / 4)
    seen: list[int] = []
    while not seen or seen[-1] != CHUNKS + 2:
        wanted = dice.randint(1, CHUNKS)
        async with aclosing(events(api, turn_id, seen[-1] if seen else 0)) as stream:
            async for event in stream:
                seen.append(int(event.id))
                wanted -= 1
                if not wanted:
                    break
    return seen


async def test_clients_that_come_and_go_miss_and_repeat_nothing(
    api: httpx.AsyncClient, driver: TurnDriver, valkey: RedisSeen
) -> None:
    turn_id = await driver.queue()
    followers = [
        asyncio.create_task(follow_in_pieces(api, turn_id, random.Random(seed)))
        for seed in range(12)
    ]
    telling = asyncio.create_task(driver.run(turn_id, CHUNKS))
    while not telling.done():
        valkey.client_kill_filter(_type="pubsub")
        await asyncio.sleep(0.05)
    for seen in await asyncio.gather(*followers):
        assert seen == list(range(1, CHUNKS + 3))


async def test_post_and_follow_in_one(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    seen: list[str] = []
    body = {"text": "Hi", "thread_id": "t"}
    async with aconnect_sse(api, "POST", "/turns/stream", json=body) as source:
        headers = source.response.headers
        assert (source.response.status_code, headers["x-thread-id"]) == (200, "t")
        running = asyncio.create_task(driver.run(headers["x-turn-id"]))
        seen = [event.event async for event in source.aiter_sse()]
    await running
    assert seen == ["queued", "text", "done"]


async def test_a_repeated_key_replays_from_the_first_chunk(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    async def post_and_follow() -> tuple[str, list[str]]:
        request: dict[str, Any] = {"json": {"text": "Hi"}, "headers": {"Idempotency-Key": "k"}}
        async with aconnect_sse(api, "POST", "/turns/stream", **request) as source:
            turn_id = source.response.headers["x-turn-id"]
            if (await driver.turns.read(turn_id)).status == "queued":
                await driver.run(turn_id)
            return turn_id, [event.id async for event in source.aiter_sse()]

    first = await post_and_follow()
    assert first[1] == ["1", "2", "3"]
    assert await post_and_follow() == first


async def test_leaving_does_not_cancel(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    async with aclosing(events(api, turn_id)) as stream:
        await anext(stream)
    assert (await api.get(f"/turns/{turn_id}")).json()["status"] == "queued"


async def test_cancelling_a_turn_that_waits_ends_its_stream(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    turn_id = await driver.queue()
    stream = events(api, turn_id)
    await anext(stream)
    assert (await api.post(f"/turns/{turn_id}/cancel")).status_code == 202
    last = [event async for event in stream]
    assert [event.event for event in last] == ["cancelled"]
    _, chunk = chunks.parse(last[0].data)
    assert isinstance(chunk, chunks.Cancelled)
    assert chunk.metadata.elapsed_s == chunk.metadata.queued_s >= 0


async def test_a_client_gone_is_forgotten(
    api: httpx.AsyncClient, driver: TurnDriver, valkey: RedisSeen
) -> None:
    turn_id = await driver.queue()
    async with aclosing(events(api, turn_id)) as stream:
        await anext(stream)
    async with asyncio.timeout(5):
        while valkey.pubsub_numsub(keys.channel(turn_id))[0][1]:
            await asyncio.sleep(0.01)


BAD_CURSORS = ["", "1 2", "+1", "-1", "1.0", "x", "0x1", "1" * 20, "1_0", "\u0661"]


@pytest.mark.parametrize("cursor", BAD_CURSORS)
async def test_a_cursor_is_a_plain_number(
    api: httpx.AsyncClient, driver: TurnDriver, cursor: str
) -> None:
    path = f"/turns/{await driver.queue()}/events"
    by_header = await api.get(path, headers={b"Last-Event-ID": cursor.encode()})
    by_query = await api.get(path, params={"after": cursor})
    for answer in (by_header, by_query):
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor")


async def test_the_header_wins_over_the_query(api: httpx.AsyncClient, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    await driver.run(turn_id)
    path = f"/turns/{turn_id}/events"
    answer = await api.get(path, params={"after": "x"}, headers={"Last-Event-ID": "2"})
    assert answer.content.startswith(b"retry: 2000\nid: 3\n")
    assert (await api.get(path, params={"after": "2"})).content == answer.content


@pytest.mark.parametrize(
    ("cursor", "first"), [("0", 1), ("000", 1), ("1", 2), ("2", 3), ("3", None), ("99", None)]
)
async def test_a_cursor_in_an_ended_turn(
    api: httpx.AsyncClient, driver: TurnDriver, cursor: str, first: int | None
) -> None:
    turn_id = await driver.queue()
    await driver.run(turn_id)
    answer = await api.get(f"/turns/{turn_id}/events", headers={"Last-Event-ID": cursor})
    if first is None:
        assert (answer.status_code, answer.content) == (204, b"")
    else:
        assert answer.content.startswith(b"retry: 2000\nid: %d\n" % first)


async def test_a_cursor_at_the_end_of_a_live_turn_waits(
    api: httpx.AsyncClient, driver: TurnDriver
) -> None:
    turn_id = await driver.queue()
    following = asyncio.create_task(numbers(api, turn_id, after=1))
    await driver.run(turn_id)
    assert await following == [2, 3]


@pytest.mark.parametrize("cursor", ["2", "9" * 19])
async def test_a_cursor_past_the_end_of_a_live_turn(
    api: httpx.AsyncClient, driver: TurnDriver, cursor: str
) -> None:
    turn_id = await driver.queue()
    answer = await api.get(f"/turns/{turn_id}/events", headers={"Last-Event-ID": cursor})
    assert (answer.status_code, answer.json()["code"]) == (410, "gone")


async def test_a_log_that_has_expired_points_to_the_transcript(
    api: httpx.AsyncClient, driver: TurnDriver, valkey: RedisSeen
) -> None:
    turn_id = await driver.queue()
    thread_id = (await driver.turns.read(turn_id)).thread_id
    await driver.run(turn_id)
    valkey.delete(keys.log(turn_id))
    answer = await api.get(f"/turns/{turn_id}/events")
    assert (answer.status_code, answer.headers["content-type"]) == (410, "application/problem+json")
    assert answer.json()["links"] == {"transcript": f"/threads/{thread_id}/messages"}
    at_its_end = await api.get(f"/turns/{turn_id}/events", params={"after": "3"})
    assert at_its_end.status_code == 204


async def test_the_end_of_the_server_is_said(redis_url: str, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    async with httpx.AsyncClient() as client:
        async with serve_api(ApiSettings(REDIS_URL=redis_url)) as base_url:
            request = client.build_request("GET", f"{base_url}/turns/{turn_id}/events")
            answer = await client.send(request, stream=True)
            parts = answer.aiter_bytes()
            assert (await anext(parts)).startswith(b"retry: 2000\nid: 1\n")
        assert b"".join([part async for part in parts]) == b": goodbye\n\n"
