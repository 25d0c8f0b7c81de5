"""The service as its clients ask it."""

import json

import pytest

from api.client.errors import NotTurnkeeper, Problem, Unreachable
from api.client.turnkeeper import TurnkeeperClient, open_client
from shared.errors import SettingsError
from tests.client_made import ALL, CHUNKS, WHOLE, FakeTime, collect, rewind
from tests.fake_api import (
    HANG_UP,
    THREAD,
    TURN,
    FakeApi,
    Reply,
    events,
    json_reply,
    numbered,
    problem,
    run_fake_api,
)


async def test_a_turn_is_asked_and_read_to_its_end(fake_api: FakeApi, client: TurnkeeperClient):
    fake_api.script = [WHOLE]
    turn = client.ask("Hello", "th-1", "chat")
    assert await collect(turn.read()) == ALL
    assert (turn.turn_id, turn.thread_id) == (TURN, THREAD)
    [asked] = fake_api.asked
    assert (asked.method, asked.path) == ("POST", "/turns/stream")
    assert json.loads(asked.body) == {"text": "Hello", "thread_id": "th-1", "agent": "chat"}
    assert asked.headers["authorization"] == "Bearer s3cret"
    assert asked.headers["accept"] == "text/event-stream"


async def test_a_retry_is_posted_and_then_read_to_its_end(
    fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [HANG_UP, json_reply({"turn_id": TURN, "thread_id": THREAD}, 202), WHOLE]
    turn = client.retry("a/b")
    assert await collect(turn.read()) == ALL
    assert (turn.turn_id, turn.thread_id) == (TURN, THREAD)
    first, second, third = fake_api.asked
    assert (first.method, first.path) == ("POST", "/turns/a%2Fb/retry")
    assert second == first
    assert first.headers["idempotency-key"]
    assert (third.method, third.path) == ("GET", f"/turns/{TURN}/events")


@pytest.mark.parametrize("body", [{}, {"turn_id": 1, "thread_id": ""}, []])
async def test_a_retry_that_something_else_answers(
    body: object, fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [json_reply(body, 202)]
    with pytest.raises(NotTurnkeeper):
        await collect(client.retry(TURN).read())


async def test_each_turn_has_a_key_of_its_own(fake_api: FakeApi, client: TurnkeeperClient):
    retried = json_reply({"turn_id": TURN, "thread_id": THREAD}, 202)
    fake_api.script = [WHOLE, WHOLE, retried, WHOLE]
    for _ in range(2):
        await collect(client.ask("Hello").read())
    await collect(client.retry(TURN).read())
    keys = [asked.headers.get("idempotency-key") for asked in fake_api.asked]
    assert len({key for key in keys if key}) == 3


async def test_pings_and_unknown_types_do_no_harm(fake_api: FakeApi, client: TurnkeeperClient):
    odd = '{"seq":2,"turn_id":"t","type":"mood","content":"","completed":false,"metadata":{"x":1}}'
    end = numbered(CHUNKS[-1], start=3)[0]
    body = b"id: 0\n\n" + events(ALL[0]) + b": ping\n\n" + events(odd) + b": ping\n\n" + events(end)
    fake_api.script = [Reply(body)]
    assert await collect(client.ask("Hello").read()) == [ALL[0], odd, end]


@pytest.mark.parametrize("cut", range(2, 7))
async def test_a_rewind_is_a_chunk_like_others_wherever_the_connection_breaks(
    cut: int, fake_api: FakeApi, client: TurnkeeperClient
):
    lines = numbered(*CHUNKS[:3], rewind(1), *CHUNKS)
    fake_api.script = [Reply(events(*lines[:cut]), cut=True), Reply(events(*lines[cut - 1 :]))]
    assert await collect(client.ask("Hello").read()) == lines
    assert fake_api.asked[1].headers["last-event-id"] == str(cut)


async def test_nothing_after_the_end_is_read(fake_api: FakeApi, client: TurnkeeperClient):
    fake_api.script = [Reply(events(*ALL, "not a chunk"))]
    assert await collect(client.ask("Hello").read()) == ALL


async def test_following_begins_where_it_is_told(fake_api: FakeApi, client: TurnkeeperClient):
    fake_api.script = [Reply(events(*ALL[2:]))]
    assert [event.seq async for event in client.follow("a/b", after=2).read()] == [3, 4]
    assert fake_api.asked[0].path == "/turns/a%2Fb/events"
    assert fake_api.asked[0].headers["last-event-id"] == "2"


async def test_no_content_means_that_all_was_seen(fake_api: FakeApi, client: TurnkeeperClient):
    fake_api.script = [Reply(status=204)]
    assert await collect(client.follow(TURN, after=4).read()) == []


@pytest.mark.parametrize("status", [401, 404, 409, 422, 429, 503])
async def test_a_refusal_is_final(
    status: int, fake_api: FakeApi, client: TurnkeeperClient, fake_time: FakeTime
):
    fake_api.script = [problem(status, "no", "Not like this.")]
    with pytest.raises(Problem, match=r"^Not like this\. \(no\)$") as caught:
        await collect(client.ask("Hello").read())
    assert caught.value.status == status
    assert fake_time.waits == []


async def test_a_refusal_that_is_no_problem_document(fake_api: FakeApi, client: TurnkeeperClient):
    fake_api.script = [Reply(b"<h1>Bad Gateway</h1>", 502, "text/html")]
    with pytest.raises(Problem, match=r"/turns/stream answered 502 Bad Gateway$"):
        await collect(client.ask("Hello").read())


async def test_a_server_that_is_not_there(fake_time: FakeTime):
    with run_fake_api() as gone:
        pass
    async with open_client(gone.url, clock=fake_time.clock) as client:
        for stream in (client.ask("Hello"), client.follow(TURN)):
            with pytest.raises(Unreachable, match=f"^cannot reach {gone.url}: .+"):
                await collect(stream.read())
        with pytest.raises(Unreachable):
            await client.queue()
    assert fake_time.waits == []


async def test_queue_and_status_are_answered_as_received(
    fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [json_reply({"depth": 0}), json_reply({"redis": "ok"})]
    assert await client.queue() == ({"depth": 0}, '{"depth": 0}')
    assert await client.status() == ({"redis": "ok"}, '{"redis": "ok"}')
    assert [asked.path for asked in fake_api.asked] == ["/queue", "/status"]


@pytest.mark.parametrize(
    "reply",
    [Reply(b"<h1>Hi</h1>", 200, "text/html"), Reply(b"[]", 200, "application/json")],
    ids=["a page", "another JSON"],
)
async def test_something_else_that_answers(
    reply: Reply, fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [reply]
    with pytest.raises(NotTurnkeeper, match=f"{fake_api.url}/queue is not Turnkeeper"):
        await client.queue()
    with pytest.raises(NotTurnkeeper, match=f"{fake_api.url}/turns/stream is not Turnkeeper"):
        await collect(client.ask("Hello").read())


@pytest.mark.parametrize("data", ["not JSON", "[]", '{"seq": 1}'])
async def test_an_event_that_is_no_chunk(data: str, fake_api: FakeApi, client: TurnkeeperClient):
    fake_api.script = [Reply(events(data))]
    with pytest.raises(NotTurnkeeper, match="not a chunk"):
        await collect(client.ask("Hello").read())


@pytest.mark.parametrize("url", ["127.0.0.1:8010", "ftp://h", "http://", "http://[::1", ""])
async def test_an_address_that_cannot_be_one(url: str):
    with pytest.raises(SettingsError, match=r"^TURNKEEPER_URL: "):
        async with open_client(url):
            pass


@pytest.mark.parametrize("token", ["a b", "a\nb", "sécret"])
async def test_a_token_that_cannot_be_sent(token: str):
    with pytest.raises(SettingsError, match=r"^API_TOKEN: "):
        async with open_client("http://127.0.0.1", token):
            pass


async def test_a_password_in_the_address_is_not_told(fake_time: FakeTime):
    with run_fake_api() as gone:
        pass
    address = gone.url.replace("http://", "http://me:hush@")
    with pytest.raises(Unreachable) as caught:
        async with open_client(address, clock=fake_time.clock) as client:
            await client.queue()
    assert "hush" not in str(caught.value)
