"""Admission: a turn is accepted whole, or refused without a trace."""

import pytest

from shared import jobs, keys
from shared.admission import Admission, NewTurn
from shared.claims import Claims
from shared.errors import AgentMismatch, UnknownTurn
from shared.record import TurnRecord, TurnRequest
from shared.turns import Turns
from tests.redis_seen import RedisSeen, hearing, log_of
from tests.turns_made import accept, new_turn

ROOMY = 1000


async def admit(turns: Turns, new: NewTurn, limit: int = ROOMY) -> Admission:
    return await turns.admit(new, limit=limit, default_agent="chat")


async def test_an_accepted_turn_is_queued(turns: Turns, valkey: RedisSeen) -> None:
    request = TurnRequest(input={"messages": [], "n": 2**60})
    new = new_turn(thread_id="t-1", agent="chat", request=request)
    admission = await admit(turns, new)
    record = await turns.read(new.turn_id)
    assert admission == Admission(new.turn_id, record)
    assert record == TurnRecord(
        turn_id=new.turn_id,
        thread_id="t-1",
        agent="chat",
        request=request,
        status="queued",
        created_at=record.created_at,
        started_at=None,
        finished_at=None,
        attempt=0,
        claim=0,
        seq=1,
        run_id=None,
        trace_url=None,
        error=None,
        usage=None,
        idempotency_key="",
        position=0,
    )
    seconds, microseconds = valkey.time()
    assert 0 <= seconds * 1000 + microseconds / 1000 - record.created_at < 10_000


async def test_an_accepted_turn_is_a_job_that_does_not_expire(
    turns: Turns, valkey: RedisSeen
) -> None:
    turn = await accept(turns)
    name = keys.job(turn.turn_id)
    job = jobs.decode_json(valkey.get(name))
    assert (job["f"], job["a"], job["k"]) == (jobs.FUNCTION, [turn.turn_id], {})
    assert valkey.ttl(name) == -1
    assert valkey.zrange(keys.queue(), 0, -1) == [turn.turn_id.encode()]


async def test_the_first_chunk_tells_the_place_in_the_queue(
    turns: Turns, claims: Claims, valkey: RedisSeen
) -> None:
    first, second = await accept(turns), await accept(turns)
    await claims.claim(first.turn_id)
    third = await accept(turns)
    for position, turn in enumerate([first, second, third]):
        assert log_of(valkey, turn.turn_id) == [
            {
                "id": "1-0",
                "type": "queued",
                "turn_id": turn.turn_id,
                "content": "",
                "completed": False,
                "metadata": {"position": position, "eta_s": None},
            }
        ]


async def test_acceptance_wakes_the_worker(turns: Turns, valkey: RedisSeen) -> None:
    with hearing(valkey, keys.control()) as heard:
        await accept(turns)
        assert heard() == b"wake"


async def test_a_retry_names_the_turn_that_it_tries_again(turns: Turns) -> None:
    first = await accept(turns)
    assert (first.retry_of, first.rolled_back_messages) == (None, None)
    assert (await accept(turns, retry_of=first.turn_id)).retry_of == first.turn_id


async def test_an_unknown_turn_cannot_be_read(turns: Turns) -> None:
    with pytest.raises(UnknownTurn, match="nobody"):
        await turns.read("nobody")


async def test_a_thread_keeps_the_agent_of_its_first_turn(turns: Turns) -> None:
    first = await accept(turns, thread_id="t", agent="incident")
    unnamed = await accept(turns, thread_id="t")
    named = await accept(turns, thread_id="t", agent="incident")
    assert [turn.agent for turn in (first, unnamed, named)] == ["incident"] * 3
    with pytest.raises(AgentMismatch, match="'incident'"):
        await admit(turns, new_turn(thread_id="t", agent="chat"))


async def test_a_new_thread_gets_the_default_agent_for_good(turns: Turns) -> None:
    assert (await accept(turns, thread_id="t")).agent == "chat"
    await turns.admit(
        later := new_turn(thread_id="t"), limit=ROOMY, default_agent="another default by now"
    )
    assert (await turns.read(later.turn_id)).agent == "chat"
