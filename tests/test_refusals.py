"""Turns that are refused, or were accepted before."""

import asyncio

import pytest

from shared import keys
from shared.admission import Admission, NewTurn
from shared.claims import Claims
from shared.errors import AgentMismatch, IdempotencyConflict, QueueFull
from shared.redis import open_redis
from shared.turns import Turns
from tests.redis_seen import RedisSeen, stored
from tests.turns_made import LIFETIMES, accept, new_turn, start

ROOMY = 1000


async def admit(turns: Turns, new: NewTurn, limit: int = ROOMY) -> Admission:
    return await turns.admit(new, limit=limit, default_agent="chat")


async def outcome_of(turns: Turns, new: NewTurn, limit: int = ROOMY) -> str:
    try:
        return "repeated" if (await admit(turns, new, limit)).repeated else "admitted"
    except QueueFull:
        return "full"


async def test_a_repeated_key_is_answered_with_the_first_turn(
    turns: Turns, valkey: RedisSeen
) -> None:
    first = await accept(turns, idempotency_key="key", body_hash="same")
    before = stored(valkey)
    again = new_turn(idempotency_key="key", body_hash="same")
    assert await admit(turns, again, limit=0) == Admission(first.turn_id, None)
    assert stored(valkey) == before


async def test_one_of_many_at_once_with_the_same_key_is_accepted(
    turns: Turns, valkey: RedisSeen
) -> None:
    many = [new_turn(idempotency_key="key", body_hash="same") for _ in range(50)]
    answers = await asyncio.gather(*(admit(turns, new) for new in many))
    assert sorted(answer.repeated for answer in answers) == [False] + [True] * 49
    [winner] = {answer.turn_id for answer in answers}
    assert valkey.zrange(keys.queue(), 0, -1) == [winner.encode()]
    assert len(valkey.keys(f"{keys.TURN_PREFIX}*")) == 1


async def test_turns_without_a_key_are_never_repeats(turns: Turns) -> None:
    answers = [await admit(turns, new_turn()) for _ in range(2)]
    assert [answer.repeated for answer in answers] == [False, False]


async def test_a_refused_turn_leaves_no_trace(turns: Turns, valkey: RedisSeen) -> None:
    await accept(turns, thread_id="t", agent="chat", idempotency_key="key", body_hash="one")
    before = stored(valkey)
    with pytest.raises(IdempotencyConflict):
        await admit(turns, new_turn(idempotency_key="key", body_hash="another"))
    with pytest.raises(AgentMismatch, match="'chat'"):
        await admit(turns, new_turn(thread_id="t", agent="other"))
    with pytest.raises(QueueFull):
        await admit(turns, new_turn(idempotency_key="fresh", body_hash="one"), limit=1)
    assert stored(valkey) == before


async def test_the_limit_counts_those_that_wait(turns: Turns, claims: Claims) -> None:
    await start(turns, claims)
    assert [await outcome_of(turns, new_turn(), limit=2) for _ in range(3)] == [
        *("admitted", "admitted", "full")
    ]
    with pytest.raises(QueueFull, match="2 waiting"):
        await admit(turns, new_turn(), limit=2)


async def test_many_at_once_never_exceed_the_limit(
    turns: Turns, claims: Claims, redis_url: str
) -> None:
    await start(turns, claims)
    async with open_redis(redis_url) as other:
        both = [turns, Turns(other, LIFETIMES)]
        outcomes = await asyncio.gather(
            *(outcome_of(both[number % 2], new_turn(), limit=8) for number in range(50))
        )
    assert sorted(outcomes) == ["admitted"] * 8 + ["full"] * 42
    assert len((await turns.queue()).waiting) == 8
