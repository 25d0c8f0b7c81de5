"""A cancel and whatever comes at the same moment: one of them wins, and both say so."""

import asyncio
from collections.abc import Awaitable

from shared import keys
from shared.claims import Claims
from shared.record import TurnRecord
from shared.turns import Cancellation, Turns
from tests.redis_seen import RedisSeen, hearing, log_of
from tests.turns_made import accept, done, start


def types_of(valkey: RedisSeen, turn: TurnRecord) -> list[str]:
    return [chunk["type"] for chunk in log_of(valkey, turn.turn_id)]


async def race(number: int, *rivals: Awaitable[object]) -> list[object]:
    """Both at once, except that in every tenth race the first wins and in the next the second."""
    match number % 10:
        case 0:
            return [await rivals[0], await rivals[1]]
        case 1:
            return [await rivals[1], await rivals[0]]
        case odd:
            return await asyncio.gather(*(rivals if odd % 2 else reversed(rivals)))


async def test_of_many_cancels_at_once_one_ends_the_turn(turns: Turns, valkey: RedisSeen) -> None:
    turn = await accept(turns)
    answers = await asyncio.gather(*(turns.cancel(turn.turn_id) for _ in range(20)))
    assert {answer.turn.status for answer in answers} == {"cancelled"}
    assert sorted(answer.ended_before for answer in answers) == [False] + [True] * 19
    assert types_of(valkey, turn) == ["queued", "cancelled"]
    assert valkey.llen(keys.unrecorded()) == 1


async def test_many_cancels_of_a_turn_that_runs_are_all_stored(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    turn = await start(turns, claims)
    answers = await asyncio.gather(*(turns.cancel(turn.turn_id) for _ in range(20)))
    assert {(answer.turn.status, answer.ended_before) for answer in answers} == {
        ("cancelling", False)
    }
    assert types_of(valkey, turn) == ["queued"]
    assert valkey.llen(keys.unrecorded()) == 0


async def test_a_start_and_a_cancel_at_once_have_one_winner(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    won = {True: 0, False: 0}
    for number in range(100):
        turn = await accept(turns)
        outcomes = await race(number, claims.claim(turn.turn_id), turns.cancel(turn.turn_id))
        [cancellation] = [each for each in outcomes if isinstance(each, Cancellation)]
        started = any(isinstance(each, TurnRecord) for each in outcomes)
        won[started] += 1
        told = types_of(valkey, turn)
        listed = valkey.llen(keys.unrecorded())
        left = valkey.zscore(keys.queue(), turn.turn_id) is not None
        if started:
            assert (told, left, listed) == (["queued"], True, won[False])
        else:
            assert (told, left, listed) == (["queued", "cancelled"], False, won[False])
        assert not cancellation.ended_before
        assert cancellation.turn.status == ("cancelling" if started else "cancelled")
        assert (await turns.read(turn.turn_id)).status == cancellation.turn.status
    assert min(won.values()) > 0


async def test_an_end_and_a_cancel_at_once_have_one_winner(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    first = {True: 0, False: 0}
    for number in range(100):
        turn = await start(turns, claims)
        ending = claims.finish(turn, 2, done(turn), None)
        with hearing(valkey, keys.control()) as heard:
            outcomes = await race(number, ending, turns.cancel(turn.turn_id))
            valkey.publish(keys.control(), "nothing more")
            told = heard() != b"nothing more"
        [cancellation] = [each for each in outcomes if isinstance(each, Cancellation)]
        first[cancellation.ended_before] += 1
        status = "done" if cancellation.ended_before else "cancelling"
        assert cancellation.turn.status == status
        assert told is not cancellation.ended_before
        assert (await turns.read(turn.turn_id)).status == "done"
        assert types_of(valkey, turn) == ["queued", "done"]
    assert min(first.values()) > 0
