"""A thread that could not be restored takes no turns until it is."""

import pytest

from shared import keys
from shared.claims import Claims
from shared.errors import Quarantined
from shared.lane import Lane
from shared.record import Failure
from shared.turns import Turns
from tests.redis_seen import RedisSeen, stored
from tests.turns_made import accept, done, failed, new_turn, start

FAILURE = Failure("rollback_failed", "The thread could not be restored.")


async def quarantine(turns: Turns, claims: Claims, thread_id: str) -> None:
    turn = await start(turns, claims, thread_id=thread_id)
    await claims.finish(turn, turn.seq + 1, failed(turn, FAILURE), FAILURE)


async def test_it_refuses_turns_without_a_trace(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    await quarantine(turns, claims, "closed")
    before = stored(valkey)
    with pytest.raises(Quarantined, match="closed"):
        await accept(turns, thread_id="closed")
    assert stored(valkey) == before
    await accept(turns, thread_id="open")


async def test_other_ends_leave_a_thread_open(turns: Turns, claims: Claims) -> None:
    turn = await start(turns, claims, thread_id="t")
    await claims.finish(turn, turn.seq + 1, done(turn), None)
    turn = await start(turns, claims, thread_id="t")
    await claims.finish(turn, turn.seq + 1, failed(turn), Failure("agent", "It failed."))
    await accept(turns, thread_id="t")


async def test_a_key_is_answered_before_that(turns: Turns, claims: Claims) -> None:
    key = {"idempotency_key": "key", "body_hash": "hash"}
    known = await accept(turns, thread_id="t", **key)
    await quarantine(turns, claims, "t")
    again = await turns.admit(new_turn(thread_id="t", **key), limit=0, default_agent="chat")
    assert (again.turn_id, again.repeated) == (known.turn_id, True)


async def test_it_outlives_what_else_is_known_of_the_thread(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    await quarantine(turns, claims, "t")
    assert valkey.ttl(keys.thread("t")) > 0
    valkey.delete(keys.thread("t"))
    with pytest.raises(Quarantined):
        await accept(turns, thread_id="t")


async def test_a_worker_says_which_threads_they_are(
    turns: Turns, claims: Claims, lane: Lane
) -> None:
    await quarantine(turns, claims, "restored")
    await lane.quarantine(["t"], only=True)
    await accept(turns, thread_id="restored")
    with pytest.raises(Quarantined):
        await accept(turns, thread_id="t")
    await lane.quarantine([], only=True)
    await accept(turns, thread_id="t")
