"""Nothing waits for Redis without a limit, and no answer reaches the wrong question."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from shared import keys
from shared.errors import RedisAway
from shared.redis import Redis, open_redis, pop, redis_errors
from shared.subscription import listen
from tests.line import Line, open_line
from tests.redis_seen import RedisSeen
from tests.stopped import run_stoppable
from tests.until import until
from worker.control import hear_control
from worker.insist import insist

PATIENCE_S = 0.2
LONGER_S = 1.0
"""Of who is not to run out of it on a busy machine."""
LONG = b"x" * 20_000_000
"""More than fits between two processes: it cannot even be sent to who does not read."""


async def in_a_pipeline(redis: Any) -> object:
    async with redis.pipeline() as pipe:
        return await pipe.get("key").get("other").execute()


async def in_a_script(redis: Any) -> object:
    return await redis.eval("return redis.call('GET', KEYS[1])", 1, "key")


async def on_a_channel(redis: Any) -> object:
    async with aclosing(listen(redis, "channel")) as messages:
        return [message async for message in messages]


COMMANDS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "a command": lambda redis: redis.get("key"),
    "a pipeline": in_a_pipeline,
    "a script": in_a_script,
    "a list": lambda redis: pop(redis, "list"),
    "a channel": on_a_channel,
    "a value too long to be sent": lambda redis: redis.set("long", LONG),
}


async def set_key(redis: Any, value: str) -> None:
    await set_all(redis, {"key": value.encode()})


async def set_all(redis: Any, values: dict[str, bytes]) -> None:
    with redis_errors():
        await redis.mset(values)


async def get(redis: Any, key: str) -> bytes | None:
    with redis_errors():
        return await redis.get(key)


async def ask_all(redis: Redis) -> list[str]:
    """Everything at once; what each failed with."""

    async def ask(command: Callable[[Any], Awaitable[object]]) -> None:
        with redis_errors():
            await command(redis)

    asking = asyncio.gather(*map(ask, COMMANDS.values()), return_exceptions=True)
    return [type(error).__name__ for error in await asyncio.wait_for(asking, 30)]


async def test_all_that_is_asked_of_a_redis_that_says_nothing_fails(tmp_path: Path) -> None:
    async with run_stoppable(tmp_path) as server, open_redis(server.url, PATIENCE_S) as redis:
        await insist(lambda: set_key(redis, "before"))
        with server.stopped():
            for _ in range(2):  # on connections that there were, then on new ones
                assert await ask_all(redis) == ["RedisAway"] * len(COMMANDS)


async def test_a_late_answer_is_never_taken_for_another(tmp_path: Path) -> None:
    async with run_stoppable(tmp_path) as server, open_redis(server.url, PATIENCE_S) as redis:
        asked = {f"key {n}": f"{n}".encode() for n in range(20)}
        await insist(lambda: set_all(redis, asked))
        with server.stopped():
            failed = await asyncio.gather(
                *(get(redis, key) for key in asked), return_exceptions=True
            )
        assert all(isinstance(error, RedisAway) for error in failed)
        answers = await asyncio.gather(*(insist(lambda key=key: get(redis, key)) for key in asked))
        assert answers == list(asked.values())


@pytest.fixture
async def line(redis_url: str, tmp_path: Path) -> AsyncGenerator[tuple[Line, Redis]]:
    """A line that may die unnoticed, and a client at its near end."""
    async with open_line(redis_url, tmp_path) as (line, url), open_redis(url, PATIENCE_S) as redis:
        yield line, redis


async def test_a_line_that_died_unnoticed_is_replaced(line: tuple[Line, Redis]) -> None:
    wire, redis = line
    await insist(lambda: set_key(redis, "before"))
    wire.die()
    with pytest.raises(RedisAway):
        await set_key(redis, "lost")
    await insist(lambda: set_key(redis, "after"))
    assert await insist(lambda: get(redis, "key")) == b"after"


async def test_what_waits_for_a_list_outlives_the_line(
    line: tuple[Line, Redis], valkey: RedisSeen
) -> None:
    wire, redis = line
    waiting = asyncio.create_task(insist(lambda: pop(redis, "list")))
    await until(lambda: valkey.info("clients")["blocked_clients"])
    wire.die()
    # On the dead line Redis waits on until its own limit: only then is an item safe from it.
    known = calls(valkey, "blpop")
    await until(lambda: calls(valkey, "blpop") > known + 1)
    valkey.rpush("list", "item")
    assert await asyncio.wait_for(waiting, 30) == b"item"


async def test_who_listens_hears_again_after_the_line_has_died(
    line: tuple[Line, Redis], valkey: RedisSeen
) -> None:
    wire, redis = line
    woken, caught_up = asyncio.Event(), 0

    async def catch_up() -> None:
        nonlocal caught_up
        caught_up += 1

    hearing = asyncio.create_task(
        hear_control(redis, {"wake": lambda _: woken.set()}, catch_up, "lane")
    )
    await until(lambda: caught_up == 1)
    wire.die()
    await until(lambda: caught_up == 2)
    await until(lambda: woken.is_set() or not valkey.publish(keys.control("lane"), "wake"))
    hearing.cancel()


def calls(valkey: RedisSeen, command: str) -> int:
    return valkey.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)


async def test_an_item_may_be_long_in_coming(redis_url: str, valkey: RedisSeen) -> None:
    async with open_redis(redis_url, LONGER_S) as redis:
        asked = calls(valkey, "blpop")
        waiting = asyncio.create_task(pop(redis, "list"))
        await until(lambda: calls(valkey, "blpop") > asked + 3)
        valkey.rpush("list", "item")
        assert await waiting == b"item"


async def test_an_item_that_does_not_come_is_waited_for_so_long(redis: Redis) -> None:
    begun = time.monotonic()
    assert await pop(redis, "list", 0.3) is None
    assert time.monotonic() - begun >= 0.3


async def test_a_channel_may_be_silent_for_long(redis_url: str, valkey: RedisSeen) -> None:
    async with open_redis(redis_url, LONGER_S / 2) as redis:
        messages, pinged = listen(redis, "channel"), calls(valkey, "ping")
        assert await anext(messages) == b""
        hearing = asyncio.ensure_future(anext(messages))
        await until(lambda: calls(valkey, "ping") > pinged + 2)
        valkey.publish("channel", "word")
        assert await hearing == b"word"
        await messages.aclose()


async def test_a_cancelled_command_ends_its_task_wherever_it_is(redis: Redis) -> None:
    async def work() -> None:
        while True:
            await set_key(redis, "value")

    for steps in range(60):
        working = asyncio.create_task(work())
        for _ in range(steps):
            await asyncio.sleep(0)
        working.cancel()
        await asyncio.wait({working}, timeout=5)
        assert working.cancelled()
