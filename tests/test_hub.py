"""Followers of a turn: each chunk once, in order, whatever happens in between."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import pytest

from api.hub import Hub
from api.mailbox import Mailbox, Signal
from shared import keys, stream
from shared.errors import RedisAway
from shared.redis import Redis, open_redis
from shared.stream import Entry
from shared.turns import Turns
from tests.line import open_line
from tests.redis_seen import RedisSeen
from tests.turn_driver import TurnDriver
from tests.turns_made import LIFETIMES
from tests.until import until
from tests.valkey import run_valkey, valkey_url

CHUNKS = 400


@pytest.fixture
def driver(redis: Redis) -> TurnDriver:
    return TurnDriver(redis)


@pytest.fixture
async def hub(redis: Redis) -> AsyncGenerator[Hub]:
    async with Hub(redis) as hub:
        yield hub


async def collect(hub: Hub, turn_id: str, after: int = 0) -> list[int]:
    return [entry.seq async for entry in hub.follow(turn_id, after)]


async def take(hub: Hub, turn_id: str, after: int, count: int) -> list[int]:
    """Follows for `count` chunks, then drops off."""
    entries = hub.follow(turn_id, after)
    try:
        return [(await anext(entries)).seq for _ in range(count)]
    finally:
        await entries.aclose()


def subscribers(valkey: RedisSeen, turn_id: str) -> int:
    [(_, count)] = valkey.pubsub_numsub(keys.channel(turn_id))
    return count


def connections(valkey: RedisSeen) -> list[str]:
    """The ids of the hub's connections."""
    return [client["id"] for client in valkey.client_list(_type="pubsub")]


def kill_connection(valkey: RedisSeen) -> int:
    """Cuts the hub's connection; answers how many were cut."""
    return valkey.client_kill_filter(_type="pubsub")


async def test_an_early_follower_hears_everything(hub: Hub, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    following = asyncio.create_task(collect(hub, turn_id))
    await driver.run(turn_id, 10)
    assert await following == list(range(1, 13))


async def test_a_late_follower_reads_everything(hub: Hub, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    await driver.run(turn_id, 10)
    assert await collect(hub, turn_id) == list(range(1, 13))


async def test_a_follower_goes_on_after_its_cursor(hub: Hub, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    following = asyncio.create_task(collect(hub, turn_id, after=4))
    await driver.run(turn_id, 10)
    assert await following == list(range(5, 13))


async def test_the_entry_is_what_was_published(hub: Hub, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    await driver.run(turn_id, 1)
    entries = [entry async for entry in hub.follow(turn_id, 1)]
    assert [entry.type for entry in entries] == ["text", "done"]
    assert b'"content":"2 "' in entries[0].body


async def follow_in_pieces(hub: Hub, turn_id: str, dice: random.Random) -> list[int]:
    """Joins somewhere, drops off and comes back until the terminal chunk."""
    await asyncio.sleep(dice.random() / 4)
    seen: list[int] = []
    while not seen or seen[-1] != CHUNKS + 2:
        last = seen[-1] if seen else 0
        seen += await take(hub, turn_id, last, dice.randint(1, CHUNKS + 2 - last))
    return seen


async def kill_connections(valkey: RedisSeen, telling: asyncio.Task[None]) -> int:
    kills = 0
    while not telling.done():
        kills += kill_connection(valkey)
        await asyncio.sleep(0.05)
    return kills


async def test_nobody_misses_or_repeats_while_connections_die(
    hub: Hub, driver: TurnDriver, valkey: RedisSeen
) -> None:
    turn_id = await driver.queue()
    followers = [
        asyncio.create_task(follow_in_pieces(hub, turn_id, random.Random(seed)))
        for seed in range(20)
    ]
    telling = asyncio.create_task(driver.run(turn_id, CHUNKS))
    assert await kill_connections(valkey, telling) > 0
    for seen in await asyncio.gather(*followers):
        assert seen == list(range(1, CHUNKS + 3))


async def test_followers_of_two_turns_hear_their_own(hub: Hub, driver: TurnDriver) -> None:
    first, second = await driver.queue(), await driver.queue()
    following = [asyncio.create_task(collect(hub, turn_id)) for turn_id in (first, second)]
    await driver.run(first, 3)
    await driver.run(second, 5)
    assert await asyncio.gather(*following) == [list(range(1, 6)), list(range(1, 8))]


async def test_the_last_to_leave_ends_the_subscription(
    hub: Hub, driver: TurnDriver, valkey: RedisSeen
) -> None:
    turn_id = await driver.queue()
    entries = [hub.follow(turn_id, 0) for _ in range(3)]
    for follower in entries:
        assert (await anext(follower)).seq == 1
    assert subscribers(valkey, turn_id) == 1
    for follower in entries:
        await follower.aclose()
    await until(lambda: subscribers(valkey, turn_id) == 0)


async def test_one_connection_serves_all_followers(
    hub: Hub, driver: TurnDriver, valkey: RedisSeen
) -> None:
    entries = [hub.follow(await driver.queue(), 0) for _ in range(20)]
    for follower in entries:
        await anext(follower)
    assert len(connections(valkey)) == 1
    for follower in entries:
        await follower.aclose()


async def test_a_slow_follower_catches_up_from_the_log(hub: Hub, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    entries = hub.follow(turn_id, 0)
    first = await anext(entries)
    await driver.run(turn_id, 2500)
    assert [first.seq, *[entry.seq async for entry in entries]] == list(range(1, 2503))


async def test_a_gap_is_filled_from_the_log(
    hub: Hub, driver: TurnDriver, valkey: RedisSeen
) -> None:
    turn_id = await driver.queue()
    entries = hub.follow(turn_id, 0)
    await anext(entries)
    valkey.xadd(keys.log(turn_id), {"type": "text", "body": "{}"}, id="2-0")
    valkey.xadd(keys.log(turn_id), {"type": "done", "body": "{}"}, id="3-0")
    valkey.publish(keys.channel(turn_id), "3 done {}")
    assert [entry.seq async for entry in entries] == [2, 3]


async def test_a_log_that_cannot_be_read_is_read_again(
    hub: Hub, driver: TurnDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_id = await driver.queue()
    await driver.run(turn_id)
    read, failures = stream.read, iter([RedisAway("gone for a moment")])

    async def read_at_second_try(redis: Redis, turn_id: str, after: int) -> AsyncGenerator[Entry]:
        for failure in failures:
            raise failure
        async for entry in read(redis, turn_id, after):
            yield entry

    monkeypatch.setattr(stream, "read", read_at_second_try)
    assert await collect(hub, turn_id) == [1, 2, 3]


async def test_a_stray_message_does_no_harm(
    hub: Hub, driver: TurnDriver, valkey: RedisSeen
) -> None:
    turn_id = await driver.queue()
    entries = hub.follow(turn_id, 0)
    await anext(entries)
    valkey.publish(keys.channel(turn_id), "nonsense")
    await driver.run(turn_id, 1)
    assert [entry.seq async for entry in entries] == [2, 3]


def pings(valkey: RedisSeen) -> int:
    return valkey.info("commandstats").get("cmdstat_ping", {}).get("calls", 0)


async def test_a_quiet_connection_is_kept_and_checked(redis_url: str, valkey: RedisSeen) -> None:
    async with open_redis(redis_url, patience_s=0.5) as own, Hub(own):
        await until(lambda: connections(valkey))
        before, pinged = connections(valkey), pings(valkey)
        await until(lambda: pings(valkey) > pinged + 2)
        assert connections(valkey) == before


async def test_a_connection_that_does_not_answer_is_replaced(
    redis_url: str, tmp_path: Path, driver: TurnDriver
) -> None:
    async with (
        open_line(redis_url, tmp_path) as (line, url),
        open_redis(url, patience_s=0.1) as own,
        Hub(own) as hub,
    ):
        turn_id = await driver.queue()
        entries = hub.follow(turn_id, 0)
        await anext(entries)
        line.die()
        await driver.run(turn_id)
        assert [entry.seq async for entry in entries] == [2, 3]


async def test_farewell_ends_followers_old_and_new(hub: Hub, driver: TurnDriver) -> None:
    turn_id = await driver.queue()
    entries = hub.follow(turn_id, 0)
    await anext(entries)
    hub.farewell.set()
    assert [entry async for entry in entries] == []
    assert await collect(hub, turn_id) == []


async def until_it_answers(redis: Redis) -> None:
    turns = Turns(redis, LIFETIMES)
    async with asyncio.timeout(5):
        while True:
            with suppress(RedisAway):
                await turns.queue()
                return
            await asyncio.sleep(0.01)


async def test_followers_outlive_a_restart_of_redis(tmp_path: Path) -> None:
    """They wait through it, and nothing that the log has kept is lost to them."""
    async with open_redis(valkey_url(tmp_path)) as redis, Hub(redis) as hub:
        driver = TurnDriver(redis)
        async with run_valkey(tmp_path):
            await until_it_answers(redis)
            turn_id = await driver.queue()
            entries = hub.follow(turn_id, 0)
            assert (await anext(entries)).seq == 1
        async with run_valkey(tmp_path):
            await until_it_answers(redis)
            await driver.run(turn_id, 3)
            assert [entry.seq async for entry in entries] == [2, 3, 4, 5]


async def test_a_full_mailbox_asks_for_the_log_instead() -> None:
    mailbox = Mailbox(limit=2)
    for seq in (1, 2, 3, 4):
        mailbox.put(Entry(seq, "text", b"{}"))
    assert await mailbox.take() is Signal.RESYNC
    mailbox.put(Entry(5, "text", b"{}"))
    assert await mailbox.take() == Entry(5, "text", b"{}")


async def test_a_closed_mailbox_keeps_nobody() -> None:
    mailbox = Mailbox()
    mailbox.put(Entry(1, "text", b"{}"))
    mailbox.close()
    assert await mailbox.take() is Signal.CLOSED
