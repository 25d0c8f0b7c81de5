"""The client keeps hold of a turn over whatever happens to its connections."""

import json
from collections.abc import Iterator

import pytest

from api.client.errors import LostSight, NotTurnkeeper, Problem, Unreachable
from api.client.patience import LIMIT_S, Clock
from api.client.turnkeeper import TurnkeeperClient, open_client
from shared.chunks import Chunk, Done, Place, Queued, Source, Summary, Text
from shared.errors import SettingsError
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

CHUNKS: list[Chunk] = [
    Queued(turn_id=TURN, metadata=Place(position=0)),
    Text(turn_id=TURN, content="Good ", metadata=Source("m1")),
    Text(turn_id=TURN, content="mörning", metadata=Source("m1")),
    Done(turn_id=TURN, metadata=Summary(elapsed_s=1.0, queued_s=0.1)),
]
ALL = numbered(*CHUNKS)
WHOLE = Reply(events(*ALL))


class FakeTime:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: sum(self.waits), wait=self.waits.append)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with run_fake_api() as api:
        yield api


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def client(api: FakeApi, time: FakeTime) -> Iterator[TurnkeeperClient]:
    with open_client(api.url, "s3cret", clock=time.clock) as client:
        yield client


def test_a_turn_is_asked_and_read_to_its_end(api: FakeApi, client: TurnkeeperClient):
    api.script = [WHOLE]
    turn = client.ask("Hello", "th-1", "chat")
    assert [event.raw for event in turn.read()] == ALL
    assert (turn.turn_id, turn.thread_id) == (TURN, THREAD)
    [asked] = api.asked
    assert (asked.method, asked.path) == ("POST", "/turns/stream")
    assert json.loads(asked.body) == {"text": "Hello", "thread_id": "th-1", "agent": "chat"}
    assert asked.headers["authorization"] == "Bearer s3cret"
    assert asked.headers["accept"] == "text/event-stream"


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(Reply(events(*ALL[:2]), cut=True), id="cut between events"),
        pytest.param(Reply(events(*ALL[:3])[:-9], cut=True), id="cut within an event"),
        pytest.param(Reply(events(*ALL[:2])), id="ended in good order, too early"),
    ],
)
def test_a_broken_stream_goes_on_after_the_last_chunk(
    first: Reply, api: FakeApi, client: TurnkeeperClient
):
    api.script = [first, Reply(events(*ALL[2:]))]
    assert [event.raw for event in client.ask("Hello").read()] == ALL
    _, again = api.asked
    assert (again.method, again.path) == ("GET", f"/turns/{TURN}/events")
    assert again.headers["last-event-id"] == "2"


def test_a_stream_broken_before_its_first_chunk_begins_at_the_first(
    api: FakeApi, client: TurnkeeperClient
):
    api.script = [Reply(cut=True), WHOLE]
    assert [event.raw for event in client.ask("Hello").read()] == ALL
    assert api.asked[1].method == "GET"
    assert "last-event-id" not in api.asked[1].headers


def test_a_post_without_an_answer_is_repeated_under_its_key(api: FakeApi, client: TurnkeeperClient):
    api.script = [HANG_UP, problem(503, "redis_away", "Not now."), WHOLE]
    assert [event.raw for event in client.ask("Hello").read()] == ALL
    assert {asked.method for asked in api.asked} == {"POST"}
    assert len({asked.headers["idempotency-key"] for asked in api.asked}) == 1
    assert len({asked.body for asked in api.asked}) == 1


def test_each_turn_has_a_key_of_its_own(api: FakeApi, client: TurnkeeperClient):
    api.script = [WHOLE]
    for _ in range(2):
        list(client.ask("Hello").read())
    assert len({asked.headers["idempotency-key"] for asked in api.asked}) == 2


def test_repeated_chunks_are_dropped(api: FakeApi, client: TurnkeeperClient):
    api.script = [Reply(events(*ALL[:2], *ALL[:2]), cut=True), WHOLE]
    assert [event.raw for event in client.ask("Hello").read()] == ALL


def test_a_silent_connection_is_given_up(api: FakeApi, time: FakeTime):
    api.script = [Reply(events(ALL[0]), hang=True), Reply(events(*ALL[1:]))]
    with open_client(api.url, clock=time.clock, silence_s=0.1) as client:
        assert [event.raw for event in client.ask("Hello").read()] == ALL


def test_pings_and_unknown_types_do_no_harm(api: FakeApi, client: TurnkeeperClient):
    odd = '{"seq":2,"turn_id":"t","type":"mood","content":"","completed":false,"metadata":{"x":1}}'
    end = numbered(CHUNKS[-1], start=3)[0]
    body = b"id: 0\n\n" + events(ALL[0]) + b": ping\n\n" + events(odd) + b": ping\n\n" + events(end)
    api.script = [Reply(body)]
    assert [event.raw for event in client.ask("Hello").read()] == [ALL[0], odd, end]


def test_nothing_after_the_end_is_read(api: FakeApi, client: TurnkeeperClient):
    api.script = [Reply(events(*ALL, "not a chunk"))]
    assert [event.raw for event in client.ask("Hello").read()] == ALL


def test_following_begins_where_it_is_told(api: FakeApi, client: TurnkeeperClient):
    api.script = [Reply(events(*ALL[2:]))]
    assert [event.seq for event in client.follow("a/b", after=2).read()] == [3, 4]
    assert api.asked[0].path == "/turns/a%2Fb/events"
    assert api.asked[0].headers["last-event-id"] == "2"


def test_no_content_means_that_all_was_seen(api: FakeApi, client: TurnkeeperClient):
    api.script = [Reply(status=204)]
    assert list(client.follow(TURN, after=4).read()) == []


def test_a_log_that_is_gone_ends_the_stream(api: FakeApi, client: TurnkeeperClient, time: FakeTime):
    api.script = [Reply(events(ALL[0]), cut=True), problem(410, "log_gone", "Read the transcript.")]
    with pytest.raises(Problem, match=r"^Read the transcript\. \(log_gone\)$"):
        list(client.ask("Hello").read())
    assert time.waits == [0.2]


@pytest.mark.parametrize("status", [401, 404, 409, 422, 429, 503])
def test_a_refusal_is_final(status: int, api: FakeApi, client: TurnkeeperClient, time: FakeTime):
    api.script = [problem(status, "no", "Not like this.")]
    with pytest.raises(Problem, match=r"^Not like this\. \(no\)$") as caught:
        list(client.ask("Hello").read())
    assert caught.value.status == status
    assert time.waits == []


def test_a_refusal_that_is_no_problem_document(api: FakeApi, client: TurnkeeperClient):
    api.script = [Reply(b"<h1>Bad Gateway</h1>", 502, "text/html")]
    with pytest.raises(Problem, match=r"/turns/stream answered 502 Bad Gateway$"):
        list(client.ask("Hello").read())


def test_a_server_in_trouble_is_asked_again(api: FakeApi, client: TurnkeeperClient):
    away = problem(503, "redis_away", "Not now.")
    api.script = [Reply(events(ALL[0]), cut=True), away, away, Reply(events(*ALL[1:]))]
    assert [event.raw for event in client.ask("Hello").read()] == ALL


def test_waits_double_up_to_a_limit(api: FakeApi, client: TurnkeeperClient, time: FakeTime):
    api.script = [Reply(events(ALL[0]), cut=True), HANG_UP]
    notices: list[str] = []
    with pytest.raises(LostSight, match=f"turnkeeper follow {TURN}$"):
        list(client.ask("Hello").read(notices.append))
    assert time.waits[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert LIMIT_S - 5 < sum(time.waits) <= LIMIT_S
    assert len(notices) == 1


def test_waits_are_short_again_after_a_new_chunk(
    api: FakeApi, client: TurnkeeperClient, time: FakeTime
):
    pieces = [Reply(events(text), cut=True) for text in ALL]
    api.script = [pieces[0], HANG_UP, HANG_UP, *pieces[1:]]
    assert [event.raw for event in client.ask("Hello").read()] == ALL
    assert time.waits == [0.2, 0.4, 0.8, 0.2, 0.2]


def test_the_limit_counts_from_the_last_sign_of_life(
    api: FakeApi, client: TurnkeeperClient, time: FakeTime
):
    waiting = [Reply(b": ping\n\n", cut=True)] * 30
    api.script = [Reply(events(ALL[0]), cut=True), *waiting, Reply(events(*ALL[1:]))]
    assert [event.raw for event in client.ask("Hello").read()] == ALL
    assert sum(time.waits) > LIMIT_S


def test_the_server_sets_the_pace(api: FakeApi, client: TurnkeeperClient, time: FakeTime):
    api.script = [Reply(b"retry: 2000\n" + events(ALL[0]), cut=True), HANG_UP, WHOLE]
    list(client.ask("Hello").read())
    assert time.waits == [2.0, 4.0]


def test_a_post_that_is_never_answered_may_have_been_accepted(
    api: FakeApi, client: TurnkeeperClient
):
    api.script = [HANG_UP]
    with pytest.raises(LostSight, match=r"turnkeeper queue$"):
        list(client.ask("Hello").read())


def test_a_server_that_is_not_there(time: FakeTime):
    with run_fake_api() as gone:
        pass
    with open_client(gone.url, clock=time.clock) as client:
        for stream in (client.ask("Hello"), client.follow(TURN)):
            with pytest.raises(Unreachable, match=f"^cannot reach {gone.url}: .+"):
                list(stream.read())
        with pytest.raises(Unreachable):
            client.queue()
    assert time.waits == []


def test_a_server_that_goes_away_for_good(time: FakeTime):
    with run_fake_api() as api:
        api.script = [Reply(events(ALL[0]), hang=True)]
        with open_client(api.url, clock=time.clock) as client:
            stream = client.ask("Hello").read()
            assert next(stream).seq == 1
            api.stop()
            with pytest.raises(LostSight, match=f"cannot reach {api.url}.*follow {TURN}$"):
                next(stream)


def test_queue_and_status_are_answered_as_received(api: FakeApi, client: TurnkeeperClient):
    api.script = [json_reply({"depth": 0}), json_reply({"redis": "ok"})]
    assert client.queue() == ({"depth": 0}, '{"depth": 0}')
    assert client.status() == ({"redis": "ok"}, '{"redis": "ok"}')
    assert [asked.path for asked in api.asked] == ["/queue", "/status"]


@pytest.mark.parametrize(
    "reply",
    [Reply(b"<h1>Hi</h1>", 200, "text/html"), Reply(b"[]", 200, "application/json")],
    ids=["a page", "another JSON"],
)
def test_something_else_that_answers(reply: Reply, api: FakeApi, client: TurnkeeperClient):
    api.script = [reply]
    with pytest.raises(NotTurnkeeper, match=f"{api.url}/queue is not Turnkeeper"):
        client.queue()
    with pytest.raises(NotTurnkeeper, match=f"{api.url}/turns/stream is not Turnkeeper"):
        list(client.ask("Hello").read())


@pytest.mark.parametrize("data", ["not JSON", "[]", '{"seq": 1}'])
def test_an_event_that_is_no_chunk(data: str, api: FakeApi, client: TurnkeeperClient):
    api.script = [Reply(events(data))]
    with pytest.raises(NotTurnkeeper, match="not a chunk"):
        list(client.ask("Hello").read())


@pytest.mark.parametrize("url", ["127.0.0.1:8010", "ftp://h", "http://", "http://[::1", ""])
def test_an_address_that_cannot_be_one(url: str):
    with pytest.raises(SettingsError, match=r"^TURNKEEPER_URL: "), open_client(url):
        pass


@pytest.mark.parametrize("token", ["a b", "a\nb", "sécret"])
def test_a_token_that_cannot_be_sent(token: str):
    with (
        pytest.raises(SettingsError, match=r"^API_TOKEN: "),
        open_client("http://127.0.0.1", token),
    ):
        pass


def test_a_password_in_the_address_is_not_told(time: FakeTime):
    with run_fake_api() as gone:
        pass
    address = gone.url.replace("http://", "http://me:hush@")
    with (
        open_client(address, clock=time.clock) as client,
        pytest.raises(Unreachable) as caught,
    ):
        client.queue()
    assert "hush" not in str(caught.value)
