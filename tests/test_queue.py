"""The queue: first come, first served, and everybody knows their place."""

import asyncio
from itertools import count

from shared import keys
from shared.claims import Claims
from shared.redis import open_redis
from shared.turns import Turns
from tests.redis_seen import RedisSeen
from tests.turns_made import LIFETIMES, accept, claim, done, new_turn


async def queued(turns: Turns) -> list[str]:
    return [turn.turn_id for turn in (await turns.queue()).waiting]


async def positions(turns: Turns, turn_ids: list[str]) -> list[int | None]:
    return [(await turns.read(turn_id)).position for turn_id in turn_ids]


async def test_turns_of_many_clients_stand_in_the_order_of_their_acceptance(
    turns: Turns, redis_url: str
) -> None:
    moments = count()
    asked: dict[str, int] = {}
    answered: dict[str, int] = {}

    async def post_many() -> None:
        async with open_redis(redis_url) as client:
            own = Turns(client, LIFETIMES)
            for _ in range(50):
                new = new_turn()
                asked[new.turn_id] = next(moments)
                await own.admit(new, limit=300, default_agent="chat")
                answered[new.turn_id] = next(moments)

    await asyncio.gather(*(post_many() for _ in range(6)))
    order = await queued(turns)
    assert set(order) == set(asked)
    assert len(order) == 300
    latest_asked = -1
    for turn_id in order:
        # Whoever stands before it must not have asked only after it had its answer.
        assert answered[turn_id] > latest_asked
        latest_asked = max(latest_asked, asked[turn_id])


async def test_turns_accepted_one_upon_another_keep_their_order(turns: Turns) -> None:
    accepted = [await accept(turns) for _ in range(300)]
    assert await queued(turns) == [turn.turn_id for turn in accepted]


async def test_a_clock_set_back_lets_nobody_overtake(turns: Turns, valkey: RedisSeen) -> None:
    first = await accept(turns)
    hour_ms = 3_600_000
    valkey.zincrby(keys.queue(), hour_ms, first.turn_id)
    later = [await accept(turns) for _ in range(3)]
    assert await queued(turns) == [turn.turn_id for turn in [first, *later]]


async def test_the_place_of_a_turn_through_its_life(turns: Turns, claims: Claims) -> None:
    accepted = [await accept(turns) for _ in range(3)]
    turn_ids = [turn.turn_id for turn in accepted]
    assert await positions(turns, turn_ids) == [0, 1, 2]
    running = await claim(claims, accepted[0])
    assert running.position == 0
    assert await positions(turns, turn_ids) == [0, 1, 2]
    await claims.finish(running, running.seq + 1, done(running), None)
    assert await positions(turns, turn_ids) == [None, 0, 1]
    await claim(claims, accepted[1])
    assert await positions(turns, turn_ids) == [None, 0, 1]


async def test_the_running_turn_is_before_all_others_wherever_it_stands(
    turns: Turns, claims: Claims
) -> None:
    accepted = [await accept(turns) for _ in range(3)]
    turn_ids = [turn.turn_id for turn in accepted]
    await claim(claims, accepted[1])
    assert await positions(turns, turn_ids) == [1, 0, 2]


async def test_the_queue_is_the_running_turn_and_those_that_wait(
    turns: Turns, claims: Claims
) -> None:
    empty = await turns.queue()
    assert (empty.running, empty.waiting) == (None, [])
    accepted = [await accept(turns) for _ in range(3)]
    assert (await turns.queue()).running is None
    await claim(claims, accepted[1])
    running, waiting = await turns.queue()
    assert running == await turns.read(accepted[1].turn_id)
    assert waiting == [await turns.read(accepted[each].turn_id) for each in (0, 2)]


async def test_a_record_that_cannot_be_read_hides_no_other(turns: Turns, valkey: RedisSeen) -> None:
    broken, lost, whole = [await accept(turns) for _ in range(3)]
    valkey.hset(keys.turn(broken.turn_id), "request", b"{bad")
    valkey.delete(keys.turn(lost.turn_id))
    assert [turn.turn_id for turn in (await turns.queue()).waiting] == [whole.turn_id]
