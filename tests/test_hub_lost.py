"""Followers of a turn whose log is gone from Redis, for a moment or for good."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from api.hub import Hub
from api.mailbox import Mailbox, Pace, Signal
from shared import keys, stream
from shared.errors import RedisAway
from shared.record import TurnRecord
from shared.redis import Redis
from shared.stream import Entry
from tests.redis_seen import RedisSeen
from tests.turn_driver import TurnDriver
from tests.until import until

WITHIN_S = 20
HASTY = Pace(look_s=0.01, again_s=0.01, lost_s=0.03)
PATIENT = Pace(look_s=0.01, again_s=0.01, lost_s=600)


@pytest.fixture
def driver(redis: Redis) -> TurnDriver:
    return TurnDriver(redis)


async def rest_of(entries: AsyncGenerator[Entry]) -> list[int]:
    async with asyncio.timeout(WITHIN_S):
        return [entry.seq async for entry in entries]


async def begin(driver: TurnDriver, hub: Hub) -> tuple[TurnRecord, AsyncGenerator[Entry]]:
    """A turn that has said 2 to 4, and a follower who has heard that."""
    turn = await driver.start(await driver.queue())
    entries = hub.follow(turn.turn_id, 0)
    assert (await anext(entries)).seq == 1
    await driver.say(turn, 2, 3)
    assert [(await anext(entries)).seq for _ in range(3)] == [2, 3, 4]
    return turn, entries


def looks(valkey: RedisSeen) -> int:
    """How often a log was read."""
    return valkey.info("commandstats").get("cmdstat_xrange", {}).get("calls", 0)


def cut(valkey: RedisSeen) -> None:
    assert valkey.client_kill_filter(_type="pubsub")


@pytest.mark.parametrize("connection_lost", [False, True])
async def test_a_turn_that_vanishes_ends_its_followers(
    redis: Redis, driver: TurnDriver, valkey: RedisSeen, connection_lost: bool
) -> None:
    async with Hub(redis, HASTY) as hub:
        _, entries = await begin(driver, hub)
        valkey.flushall()
        if connection_lost:
            cut(valkey)
        assert await rest_of(entries) == []


@pytest.mark.parametrize("connection_lost", [False, True])
async def test_a_log_that_is_written_again_is_read_on(
    redis: Redis, driver: TurnDriver, valkey: RedisSeen, connection_lost: bool
) -> None:
    async with Hub(redis, PATIENT) as hub:
        turn, entries = await begin(driver, hub)
        following = asyncio.create_task(rest_of(entries))
        valkey.flushall()
        if connection_lost:
            cut(valkey)
        seen = looks(valkey)
        await until(lambda: following.done() or looks(valkey) > seen + 5)
        await driver.claims.revive(turn, "running")
        seen = looks(valkey)
        await until(lambda: following.done() or looks(valkey) > seen + 5)
        await driver.say(turn, 2, 4)
        await driver.finish(turn)
        assert await following == [5, 6]


async def test_a_log_that_ends_before_what_was_read_is_another_one(
    redis: Redis, driver: TurnDriver, valkey: RedisSeen
) -> None:
    async with Hub(redis, HASTY) as hub:
        turn, entries = await begin(driver, hub)
        valkey.flushall()
        await driver.claims.revive(turn, "queued")
        assert await rest_of(entries) == []


async def test_a_turn_that_is_only_silent_keeps_its_followers(
    redis: Redis, driver: TurnDriver, valkey: RedisSeen
) -> None:
    async with Hub(redis, HASTY) as hub:
        turn, entries = await begin(driver, hub)
        following, seen = asyncio.create_task(rest_of(entries)), looks(valkey)
        await until(lambda: following.done() or looks(valkey) > seen + 10)
        await driver.finish(turn)
        assert await following == [5]


async def test_a_chunk_that_was_not_heard_is_read_after_a_silence(
    redis: Redis, driver: TurnDriver, valkey: RedisSeen
) -> None:
    async with Hub(redis, PATIENT) as hub:
        turn, entries = await begin(driver, hub)
        valkey.xadd(keys.log(turn.turn_id), {"type": "done", "body": "{}"}, id="5-0")
        assert await rest_of(entries) == [5]


async def test_what_redis_does_not_say_is_not_taken_for_gone(
    redis: Redis, driver: TurnDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is only ever missing for as long as it takes Redis to go away again."""
    turn_id = await driver.queue()
    await driver.run(turn_id)
    read, failures = stream.read, iter([None, RedisAway("gone for a moment")] * 10)

    async def read_late(redis: Redis, turn_id: str, after: int) -> AsyncGenerator[Entry]:
        for failure in failures:
            if failure:
                raise failure
            return
        async for entry in read(redis, turn_id, after):
            yield entry

    monkeypatch.setattr(stream, "read", read_late)
    async with Hub(redis, HASTY) as hub:
        assert await rest_of(hub.follow(turn_id, 0)) == [1, 2, 3]


async def test_between_two_looks_a_follower_waits() -> None:
    mailbox = Mailbox(pace=Pace(look_s=0, again_s=600, lost_s=600))
    assert await mailbox.take() is Signal.RESYNC
    mailbox.missed()
    taking = asyncio.create_task(mailbox.take())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not taking.done()
    mailbox.put(Entry(1, "text", b"{}"))
    assert await taking == Entry(1, "text", b"{}")
