"""What an ended turn leaves in Redis goes away by itself; what is in flight does not."""

import pytest

from shared import keys
from shared.claims import Claims
from shared.lane import Lane
from shared.record import TurnRecord
from shared.turns import Turns
from tests.redis_seen import RedisSeen, everlasting
from tests.turns_made import FAILURE, accept, claim, done, failed, start


async def end(turns: Turns, claims: Claims, lane: Lane, turn: TurnRecord, status: str) -> None:
    match status:
        case "cancelled":
            await turns.cancel(turn.turn_id)
            record = await lane.next_unrecorded()
            assert record
            await lane.drop_unrecorded(record)  # as the worker does when it has entered the turn
        case "error":
            await claims.finish(await claim(claims, turn), 2, failed(turn), FAILURE)
        case _:
            await claims.finish(await claim(claims, turn), 2, done(turn), None)


@pytest.mark.parametrize("status", ["done", "error", "cancelled"])
@pytest.mark.parametrize("key", [{}, {"idempotency_key": "key", "body_hash": "hash"}])
async def test_every_key_of_an_ended_turn_has_a_lifetime(
    turns: Turns,
    claims: Claims,
    lane: Lane,
    valkey: RedisSeen,
    status: str,
    key: dict[str, str],
) -> None:
    turn = await accept(turns, **key)
    await end(turns, claims, lane, turn, status)
    assert (await turns.read(turn.turn_id)).status == status
    valkey.delete(keys.job(turn.turn_id))  # as arq does when the function returns
    assert everlasting(valkey) == set()
    assert valkey.zscore(keys.queue(), turn.turn_id) is None


async def test_chunks_and_record_have_lifetimes_of_their_own(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims, idempotency_key="key", body_hash="hash")
    await claims.finish(turn, turn.seq + 1, done(turn), None)
    left = {
        name: valkey.ttl(name)
        for name in (
            keys.log(turn.turn_id),
            keys.turn(turn.turn_id),
            keys.idempotency("key"),
            keys.thread(turn.thread_id),
        )
    }
    assert [round(seconds, -1) for seconds in left.values()] == [100, 200, 200, 200]


async def test_nothing_of_a_turn_in_flight_goes_away(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    await accept(turns, idempotency_key="key", body_hash="hash")
    await start(turns, claims)
    assert everlasting(valkey) == {name.decode() for name in valkey.scan_iter()}


async def test_a_thread_is_kept_while_a_turn_of_it_is_in_flight(
    turns: Turns, claims: Claims, lane: Lane, valkey: RedisSeen
) -> None:
    first, second = [await accept(turns, thread_id="t") for _ in range(2)]
    await end(turns, claims, lane, first, "done")
    assert valkey.ttl(keys.thread("t")) == -1
    await end(turns, claims, lane, second, "cancelled")
    assert valkey.ttl(keys.thread("t")) > 0
    await accept(turns, thread_id="t")
    assert valkey.ttl(keys.thread("t")) == -1


async def test_the_job_goes_away_when_the_worker_dies_right_after_the_end(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    await claims.finish(turn, turn.seq + 1, done(turn), None)
    assert everlasting(valkey) == set()
