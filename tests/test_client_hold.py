"""The client keeps hold of a turn over whatever happens to its connections."""

import pytest

from api.client.errors import LostSight, Problem
from api.client.patience import LIMIT_S
from api.client.turnkeeper import TurnkeeperClient, open_client
from tests.client_made import ALL, WHOLE, FakeTime, collect
from tests.fake_api import HANG_UP, TURN, FakeApi, Reply, events, problem, run_fake_api


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(Reply(events(*ALL[:2]), cut=True), id="cut between events"),
        pytest.param(Reply(events(*ALL[:3])[:-9], cut=True), id="cut within an event"),
        pytest.param(Reply(events(*ALL[:2])), id="ended in good order, too early"),
    ],
)
async def test_a_broken_stream_goes_on_after_the_last_chunk(
    first: Reply, fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [first, Reply(events(*ALL[2:]))]
    assert await collect(client.ask("Hello").read()) == ALL
    _, again = fake_api.asked
    assert (again.method, again.path) == ("GET", f"/turns/{TURN}/events")
    assert again.headers["last-event-id"] == "2"


async def test_a_stream_broken_before_its_first_chunk_begins_at_the_first(
    fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [Reply(cut=True), WHOLE]
    assert await collect(client.ask("Hello").read()) == ALL
    assert fake_api.asked[1].method == "GET"
    assert "last-event-id" not in fake_api.asked[1].headers


async def test_a_post_without_an_answer_is_repeated_under_its_key(
    fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [HANG_UP, problem(503, "redis_away", "Not now."), WHOLE]
    assert await collect(client.ask("Hello").read()) == ALL
    assert {asked.method for asked in fake_api.asked} == {"POST"}
    assert len({asked.headers["idempotency-key"] for asked in fake_api.asked}) == 1
    assert len({asked.body for asked in fake_api.asked}) == 1


async def test_repeated_chunks_are_dropped(fake_api: FakeApi, client: TurnkeeperClient):
    fake_api.script = [Reply(events(*ALL[:2], *ALL[:2]), cut=True), WHOLE]
    assert await collect(client.ask("Hello").read()) == ALL


async def test_a_silent_connection_is_given_up(fake_api: FakeApi, fake_time: FakeTime):
    fake_api.script = [Reply(events(ALL[0]), hang=True), Reply(events(*ALL[1:]))]
    async with open_client(fake_api.url, clock=fake_time.clock, silence_s=0.1) as client:
        assert await collect(client.ask("Hello").read()) == ALL


async def test_a_log_that_is_gone_ends_the_stream(
    fake_api: FakeApi, client: TurnkeeperClient, fake_time: FakeTime
):
    fake_api.script = [
        Reply(events(ALL[0]), cut=True),
        problem(410, "log_gone", "Read the transcript."),
    ]
    with pytest.raises(Problem, match=r"^Read the transcript\. \(log_gone\)$"):
        await collect(client.ask("Hello").read())
    assert fake_time.waits == [0.2]


async def test_a_server_in_trouble_is_asked_again(fake_api: FakeApi, client: TurnkeeperClient):
    away = problem(503, "redis_away", "Not now.")
    fake_api.script = [Reply(events(ALL[0]), cut=True), away, away, Reply(events(*ALL[1:]))]
    assert await collect(client.ask("Hello").read()) == ALL


async def test_waits_double_up_to_a_limit(
    fake_api: FakeApi, client: TurnkeeperClient, fake_time: FakeTime
):
    fake_api.script = [Reply(events(ALL[0]), cut=True), HANG_UP]
    notices: list[str] = []
    with pytest.raises(LostSight, match=f"turnkeeper follow {TURN}$"):
        await collect(client.ask("Hello").read(notices.append))
    assert fake_time.waits[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert LIMIT_S - 5 < sum(fake_time.waits) <= LIMIT_S
    assert len(notices) == 1


async def test_waits_are_short_again_after_a_new_chunk(
    fake_api: FakeApi, client: TurnkeeperClient, fake_time: FakeTime
):
    pieces = [Reply(events(text), cut=True) for text in ALL]
    fake_api.script = [pieces[0], HANG_UP, HANG_UP, *pieces[1:]]
    assert await collect(client.ask("Hello").read()) == ALL
    assert fake_time.waits == [0.2, 0.4, 0.8, 0.2, 0.2]


async def test_the_limit_counts_from_the_last_sign_of_life(
    fake_api: FakeApi, client: TurnkeeperClient, fake_time: FakeTime
):
    waiting = [Reply(b": ping\n\n", cut=True)] * 30
    fake_api.script = [Reply(events(ALL[0]), cut=True), *waiting, Reply(events(*ALL[1:]))]
    assert await collect(client.ask("Hello").read()) == ALL
    assert sum(fake_time.waits) > LIMIT_S


async def test_the_server_sets_the_pace(
    fake_api: FakeApi, client: TurnkeeperClient, fake_time: FakeTime
):
    fake_api.script = [Reply(b"retry: 2000\n" + events(ALL[0]), cut=True), HANG_UP, WHOLE]
    await collect(client.ask("Hello").read())
    assert fake_time.waits == [2.0, 4.0]


async def test_a_post_that_is_never_answered_may_have_been_accepted(
    fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [HANG_UP]
    with pytest.raises(LostSight, match=r"turnkeeper queue$"):
        await collect(client.ask("Hello").read())


async def test_a_server_that_goes_away_for_good(fake_time: FakeTime):
    with run_fake_api() as api:
        api.script = [Reply(events(ALL[0]), hang=True)]
        async with open_client(api.url, clock=fake_time.clock) as client:
            stream = client.ask("Hello").read()
            assert (await anext(stream)).seq == 1
            api.stop()
            with pytest.raises(LostSight, match=f"cannot reach {api.url}.*follow {TURN}$"):
                await anext(stream)
