"""The last word on a turn is told to a Redis that knows all of it, a part of it, or nothing."""

import pytest
from msgspec.structs import replace

from shared import keys
from shared.claims import Claims
from shared.errors import Fenced
from shared.record import TurnRecord
from shared.redis import Redis
from shared.stream import Entry
from shared.turns import Turns
from tests.memory import untold
from tests.redis_seen import RedisSeen, everlasting, log_of, stored
from tests.turns_made import (
    FAILURE,
    LIFETIMES,
    claim,
    done,
    entry,
    failed,
    queued,
    start,
    text,
)
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.memory import Memory
from worker.publisher import open_publisher
from worker.telling import let_go, tell, tell_later


@pytest.fixture
def memory(saver: TurnSaver) -> Memory:
    return Memory(saver, {}, kept_s=0)


@pytest.fixture
async def turn(turns: Turns, claims: Claims) -> TurnRecord:
    """A turn that runs, of which two chunks were sent."""
    turn = await start(turns, claims, idempotency_key="key", body_hash="hash")
    for sent in said(turn, 2, 3):
        await claims.publish(turn, sent)
    return turn


def said(turn: TurnRecord, *numbers: int) -> list[Entry]:
    """Each of them a message, so that none is joined to another."""
    return [entry(seq, text(turn, f"{seq} ", message_id=f"{seq}")) for seq in numbers]


async def end(memory: Memory, turn: TurnRecord, last: int = 3) -> Ending:
    """The turn's end in the database, with its chunks up to number `last`."""
    log = [entry(1, queued(turn)), *said(turn, *range(2, last + 1))]
    ending = Ending(turn=turn, chunk=done(turn), log=log)
    await memory.write_down(ending)
    return ending


def told(valkey: RedisSeen, turn: TurnRecord) -> list[str]:
    """What each chunk says, or else its type; their numbers have no gap."""
    log = log_of(valkey, turn.turn_id)
    assert [chunk["id"] for chunk in log] == [f"{seq}-0" for seq in range(1, len(log) + 1)]
    return [chunk["content"] or chunk["type"] for chunk in log]


def whole(last: int) -> list[str]:
    """So when all was told."""
    return ["queued", *(f"{seq} " for seq in range(2, last + 1)), "done"]


@pytest.mark.parametrize("last", [3, 4, 6])
async def test_a_redis_that_knows_the_turn_is_told_what_it_has_not(
    claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord, last: int
) -> None:
    await tell_later(claims, memory, await end(memory, turn, last))
    assert told(valkey, turn) == whole(last)
    assert valkey.hget(keys.turn(turn.turn_id), "status") == b"done"
    assert await untold(memory) == []
    assert everlasting(valkey) == set()


async def test_a_redis_that_has_lost_its_last_second_is_told_it_again(
    claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord
) -> None:
    kept = {key: valkey.dump(key) for key in valkey.scan_iter()}
    ending = await end(memory, turn, 5)
    await tell_later(claims, memory, ending)
    assert await memory.untold() == [ending], "Redis may still lose it"
    valkey.flushall()
    for key, value in kept.items():
        valkey.restore(key, 0, value)
    again = await claim(claims, turn)
    found = await memory.end_of(again)
    assert found
    assert found == replace(ending, turn=again)
    await tell_later(claims, memory, found)
    assert told(valkey, turn) == whole(5)


async def test_a_chunk_that_was_sent_never_changes(
    claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord
) -> None:
    # A follower may have the first of them, from a Redis that has lost its last second.
    log = [entry(1, queued(turn)), *said(turn, 2, 3)]
    log += [entry(seq, text(turn, f"{seq} ")) for seq in (4, 5)]
    await memory.write_down(ending := Ending(turn=turn, chunk=done(turn), log=log))
    await tell_later(claims, memory, ending)
    assert told(valkey, turn) == whole(5)


@pytest.mark.parametrize("last", [1, 3, 5])
async def test_a_redis_that_has_been_emptied_hears_of_the_turn(
    turns: Turns, claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord, last: int
) -> None:
    ending = await end(memory, turn, last)
    valkey.flushall()
    await tell_later(claims, memory, ending)
    assert told(valkey, turn) == whole(last)
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.thread_id, ended.request) == ("done", turn.thread_id, turn.request)
    assert valkey.exists(keys.running(), keys.queue()) == 0
    assert await untold(memory) == []
    assert everlasting(valkey) == set()


async def test_the_running_turn_keeps_the_slot(
    turns: Turns, claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord
) -> None:
    ending = await end(memory, turn)
    valkey.flushall()
    running = await start(turns, claims)
    await tell_later(claims, memory, ending)
    assert (await turns.queue()).running == running


async def test_an_older_claim_is_taken_over(
    turns: Turns, redis: Redis, memory: Memory, valkey: RedisSeen, turn: TurnRecord
) -> None:
    older = valkey.dump(keys.turn(turn.turn_id))
    newer = await claim(others := Claims(redis, LIFETIMES), turn)
    ending = await end(memory, newer, 4)
    valkey.restore(keys.turn(turn.turn_id), 0, older, replace=True)
    await tell_later(others, memory, ending)
    assert told(valkey, turn) == ["queued", "2 ", "3 ", "4 ", "done"]
    assert (await turns.read(turn.turn_id)).claim == newer.claim


async def test_a_turn_that_is_cancelled_too_late_ends_as_it_did(
    turns: Turns, claims: Claims, memory: Memory, turn: TurnRecord
) -> None:
    await turns.cancel(turn.turn_id)
    await tell_later(claims, memory, await end(memory, turn, 4))
    assert (await turns.read(turn.turn_id)).status == "done"


async def test_an_end_that_redis_knows_stands(
    turns: Turns, claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord
) -> None:
    await claims.finish(turn, 4, failed(turn), FAILURE)
    before = stored(valkey)
    await tell_later(claims, memory, await end(memory, turn, 4))
    assert stored(valkey) == before
    assert (await turns.read(turn.turn_id)).error == FAILURE
    assert await untold(memory) == []


async def test_a_turn_of_another_claim_is_not_ended(
    redis: Redis, claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord
) -> None:
    ending = await end(memory, turn, 4)
    await claim(Claims(redis, LIFETIMES), turn)
    before = stored(valkey)
    with pytest.raises(Fenced):
        await tell_later(claims, memory, ending)
    assert stored(valkey) == before
    assert await untold(memory) == [ending]


async def test_chunks_come_before_the_end_although_redis_forgets_in_between(
    claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord
) -> None:
    log = [entry(1, queued(turn)), *said(turn, 2, 3)]
    async with open_publisher(claims, turn, log, lambda: None) as publisher:
        publisher.put(text(turn, "4 "))
    valkey.flushall()
    await tell(claims, memory, await end(memory, turn), publisher)
    assert told(valkey, turn) == ["queued", "2 ", "3 ", "4 ", "done"]
    assert await untold(memory) == []


async def test_so_it_is_when_the_turn_waits_again(
    turns: Turns, claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord
) -> None:
    log = [entry(1, queued(turn)), *said(turn, 2, 3)]
    async with open_publisher(claims, turn, log, lambda: None) as publisher:
        publisher.put(text(turn, "4 "))
    valkey.flushall()
    assert await let_go(claims, turn, publisher)
    assert told(valkey, turn) == ["queued", "2 ", "3 ", "4 ", "queued"]
    assert (await turns.read(turn.turn_id)).status == "queued"


async def test_a_turn_that_is_to_be_undone_does_not_wait_again(
    turns: Turns, claims: Claims, memory: Memory, valkey: RedisSeen, turn: TurnRecord
) -> None:
    log = [entry(1, queued(turn)), *said(turn, 2, 3)]
    async with open_publisher(claims, turn, log, lambda: None) as publisher:
        pass
    await turns.cancel(turn.turn_id)
    assert not await let_go(claims, turn, publisher)
    assert told(valkey, turn) == ["queued", "2 ", "3 "]
