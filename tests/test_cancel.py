"""A cancel ends a turn that has not started, and nothing else."""

import asyncio

import pytest

from shared import chunks, keys, stream
from shared.claims import Claims
from shared.errors import UnknownTurn
from shared.record import TurnRecord
from shared.redis import Redis
from shared.turns import Cancellation, Turns
from tests.redis_seen import RedisSeen, log_of
from tests.turns_made import accept, cancelled, claimed_turn, done, start


def types_of(valkey: RedisSeen, turn: TurnRecord) -> list[str]:
    return [chunk["type"] for chunk in log_of(valkey, turn.turn_id)]


async def test_a_turn_that_waits_ends_at_once(
    turns: Turns, redis: Redis, valkey: RedisSeen
) -> None:
    turn = await accept(turns)
    chunk = cancelled(turn)
    assert await turns.cancel(turn, chunk) == Cancellation("cancelled", ended_now=True)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.seq, ended.position) == ("cancelled", 2, None)
    assert ended.started_at is None
    assert ended.finished_at is not None
    assert ended.finished_at >= ended.created_at
    _, entry = [entry async for entry in stream.read(redis, turn.turn_id, 0)]
    assert chunks.parse(chunks.frame(entry.seq, entry.body)) == (2, chunk)
    assert valkey.zcard(keys.queue()) == 0
    assert 0 < valkey.ttl(keys.job(turn.turn_id)) <= 60


async def test_followers_hear_of_it(turns: Turns, valkey: RedisSeen) -> None:
    turn = await accept(turns)
    with valkey.pubsub() as heard:
        heard.subscribe(keys.channel(turn.turn_id))
        assert heard.get_message(timeout=5)["type"] == "subscribe"
        await turns.cancel(turn, cancelled(turn))
        entry = stream.parse_message(heard.get_message(timeout=5)["data"])
    assert (entry.seq, entry.type, entry.terminal) == (2, "cancelled", True)
    assert entry.body == chunks.encode(cancelled(turn))


async def test_a_turn_that_runs_is_left_to_its_worker(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    assert await turns.cancel(turn, cancelled(turn)) == Cancellation("running", ended_now=False)
    assert await turns.read(turn.turn_id) == turn
    assert types_of(valkey, turn) == ["queued"]


async def test_a_turn_that_has_ended_stays_as_it_is(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await claims.finish(turn, done(turn), None)
    ended = await turns.read(turn.turn_id)
    assert await turns.cancel(turn, cancelled(turn)) == Cancellation("done", ended_now=False)
    assert await turns.read(turn.turn_id) == ended
    assert types_of(valkey, turn) == ["queued", "done"]


async def test_of_many_cancels_at_once_one_ends_the_turn(turns: Turns, valkey: RedisSeen) -> None:
    turn = await accept(turns)
    answers = await asyncio.gather(*(turns.cancel(turn, cancelled(turn)) for _ in range(20)))
    assert {answer.status for answer in answers} == {"cancelled"}
    assert sum(answer.ended_now for answer in answers) == 1
    assert types_of(valkey, turn) == ["queued", "cancelled"]


async def test_an_unknown_turn_cannot_be_cancelled(turns: Turns, valkey: RedisSeen) -> None:
    unknown = claimed_turn(turn_id="nobody")
    with pytest.raises(UnknownTurn, match="nobody"):
        await turns.cancel(unknown, cancelled(unknown))
    assert valkey.dbsize() == 0


async def test_a_start_and_a_cancel_at_once_have_one_winner(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    won = {True: 0, False: 0}
    for number in range(100):
        turn = await accept(turns)
        race = [claims.claim(turn.turn_id), turns.cancel(turn, cancelled(turn))]
        if number % 2:
            race.reverse()
        outcomes = await asyncio.gather(*race)
        [cancellation] = [each for each in outcomes if isinstance(each, Cancellation)]
        started = any(isinstance(each, TurnRecord) for each in outcomes)
        won[started] += 1
        status, told, left = (
            (await turns.read(turn.turn_id)).status,
            types_of(valkey, turn),
            valkey.zscore(keys.queue(), turn.turn_id) is not None,
        )
        if started:
            assert cancellation == ("running", False)
            assert (status, told, left) == ("running", ["queued"], True)
        else:
            assert cancellation == ("cancelled", True)
            assert (status, told, left) == ("cancelled", ["queued", "cancelled"], False)
    assert min(won.values()) > 0
