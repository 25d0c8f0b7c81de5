"""The client cancels a turn that it follows, whatever happens to its connections."""

import re

import pytest

from api.client.canceller import open_canceller
from api.client.errors import Problem, Unreachable
from api.client.patience import LIMIT_S
from api.client.turn_stream import TurnStream
from api.client.turnkeeper import TurnkeeperClient, open_client
from tests.client_made import ALL, FakeTime, collect
from tests.fake_api import (
    CANCELLING,
    HANG_UP,
    TURN,
    FakeApi,
    Reply,
    events,
    json_reply,
    problem,
    run_fake_api,
)
from tests.terminal import cancelled, queued, silent
from tests.until import until

SILENT = silent(queued(0), end=cancelled())
AWAY = problem(503, "redis_away", "Not now.")
HANGING = Reply(events(ALL[0]), hang=True)


async def read_and_cancel(client: TurnkeeperClient, turn: TurnStream) -> list[str]:
    """The types of the turn's chunks; it is cancelled after the first."""
    types: list[str] = []
    async with open_canceller(client, turn, lambda _: None) as canceller:
        async for event in turn.read():
            types.append(event.type)
            canceller.want()
    return types


async def test_a_cancel_is_sent_while_the_stream_is_silent(
    fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [SILENT]
    assert await read_and_cancel(client, client.ask("Hello")) == ["queued", "cancelled"]
    assert fake_api.paths() == ["/turns/stream", f"/turns/{TURN}/cancel"]
    assert fake_api.asked[1].method == "POST"
    assert fake_api.asked[1].headers["authorization"] == "Bearer s3cret"


async def test_a_turn_is_cancelled_as_soon_as_it_is_known(
    fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [SILENT]
    turn = client.ask("Hello")
    async with open_canceller(client, turn, lambda _: None) as canceller:
        canceller.want()
        await collect(turn.read())
    assert fake_api.paths() == ["/turns/stream", f"/turns/{TURN}/cancel"]


@pytest.mark.parametrize("first", [HANG_UP, AWAY], ids=["no answer", "in trouble"])
async def test_a_turn_that_may_have_been_accepted_is_sought_to_be_cancelled(
    first: Reply, fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [first, AWAY, SILENT]
    turn = client.ask("Hello")
    async with open_canceller(client, turn, lambda _: None) as canceller:
        canceller.want()
        await collect(turn.read())
    assert fake_api.paths() == [*["/turns/stream"] * 3, f"/turns/{TURN}/cancel"]
    assert len({asked.headers["idempotency-key"] for asked in fake_api.asked[:3]}) == 1


async def test_a_turn_that_was_not_accepted_is_not_sought(
    fake_api: FakeApi, client: TurnkeeperClient, fake_time: FakeTime
):
    with run_fake_api() as gone:
        pass
    fake_api.script = [problem(429, "queue_full", "Full.")]
    async with open_client(gone.url, clock=fake_time.clock) as lost:
        for turn, error in ((client.ask("Hello"), Problem), (lost.ask("Hello"), Unreachable)):
            turn.sought = True
            with pytest.raises(error):
                await collect(turn.read())
    assert fake_time.waits == []


async def test_a_lost_server_is_asked_again(fake_api: FakeApi, client: TurnkeeperClient):
    fake_api.script = [SILENT]
    fake_api.cancels = [HANG_UP, AWAY, Reply(b"", 502), *fake_api.cancels]
    turn = client.follow(TURN)
    notes: list[str] = []
    async with open_canceller(client, turn, notes.append) as canceller:
        canceller.want()
        await collect(turn.read())
        await until(lambda: turn.cancelled)
    assert len(fake_api.paths("/cancel")) == 4
    assert notes == ["cancelling …"]


@pytest.mark.parametrize(
    ("reply", "times", "reason"),
    [
        (HANG_UP, range(15, 20), "the connection to .* broke"),
        (problem(404, "unknown_turn", "No such turn."), [1], "No such turn"),
        (Reply(b"[]", 202, "application/json"), [1], "is not Turnkeeper"),
    ],
    ids=["lost for good", "refused", "something else"],
)
async def test_what_cannot_be_cancelled_is_told(
    reply: Reply,
    times: list[int],
    reason: str,
    fake_api: FakeApi,
    client: TurnkeeperClient,
    fake_time: FakeTime,
):
    fake_api.cancels = [reply]
    turn = client.follow(TURN)
    notes: list[str] = []
    async with open_canceller(client, turn, notes.append) as canceller:
        turn.accepted.set()
        canceller.want()
        await until(lambda: len(notes) == 2)
    assert len(fake_api.asked) in times
    assert sum(fake_time.waits) <= LIMIT_S
    assert re.search(f"^the turn cannot be cancelled: .*{reason}", notes[1])
    assert not turn.cancelled


async def test_who_leaves_is_told_what_becomes_of_the_turn(
    fake_api: FakeApi, client: TurnkeeperClient
):
    fake_api.script = [HANGING]
    fake_api.cancels = [json_reply(CANCELLING, 202)._replace(late=True)]
    turn = client.ask("Hello")
    assert turn.whereabouts == "the turn may have been accepted; see turnkeeper queue"
    stream = turn.read()
    await anext(stream)
    again = f"follow it with: turnkeeper follow {TURN}"
    assert turn.whereabouts == f"the turn goes on; {again}"
    async with open_canceller(client, turn, lambda _: None) as canceller:
        canceller.want()
        assert turn.whereabouts == f"the turn may go on; {again}"
        fake_api.let_go()
        await until(lambda: turn.cancelled)
    assert turn.whereabouts == f"the turn is being cancelled; {again}"
    await stream.aclose()
