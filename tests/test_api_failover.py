"""API processes that end under their followers, who go on at another one."""

import asyncio
import re
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import httpx

from api.listener import bind
from shared import keys
from shared.redis import Redis
from tests.processes import WITHIN_S, run_api
from tests.redis_seen import RedisSeen
from tests.turn_driver import TurnDriver
from tests.until import until

FOLLOWERS = 20
EVENT = re.compile(rb"(?:retry: \d+\n)?id: (\d+)\n")
STOPS_WITHIN_S = 10


class Follower:
    """Follows a turn to its end; where one API ends, at the next."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.api = 0
        self.goodbyes: list[int] = []

    async def follow(self, path: str, apis: Sequence[httpx.AsyncClient]) -> None:
        for self.api, client in enumerate(apis):
            with suppress(httpx.TransportError):
                await self._read(path, client)

    async def _read(self, path: str, client: httpx.AsyncClient) -> None:
        last = {"Last-Event-ID": str(self.seen[-1])} if self.seen else {}
        async with client.stream("GET", path, headers=last) as answer:
            assert answer.status_code == 200
            rest = b""
            async for part in answer.aiter_bytes():
                *blocks, rest = (rest + part).split(b"\n\n")  # what was cut short does not count
                for block in blocks:
                    self._take(block)

    def _take(self, block: bytes) -> None:
        if event := EVENT.match(block):
            self.seen.append(int(event[1]))
        elif block == b": goodbye":
            self.goodbyes.append(self.api)


@asynccontextmanager
async def open_apis(
    url: str, count: int
) -> AsyncGenerator[list[tuple[Process, httpx.AsyncClient]]]:
    """So many API processes on one Redis that have come up, and a client of each."""
    async with AsyncExitStack() as stack:
        apis: list[tuple[Process, httpx.AsyncClient]] = []
        for _ in range(count):
            with bind("127.0.0.1", 0) as listener:
                base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                process = await stack.enter_async_context(
                    run_api(listener, REDIS_URL=url, LOG_LEVEL="WARNING")
                )
            client = httpx.AsyncClient(base_url=base_url, timeout=WITHIN_S)
            apis.append((process, await stack.enter_async_context(client)))
        await asyncio.gather(*(client.get("/health/live") for _, client in apis))
        yield apis


async def keep_talking(driver: TurnDriver, turn_id: str, enough: asyncio.Event) -> int:
    """A turn that says one thing after another until it is enough; the number of its last chunk."""
    turn, seq = await driver.start(turn_id), 1
    while not enough.is_set():
        seq += 1
        await driver.say(turn, seq)
        await asyncio.sleep(0.02)
    await driver.finish(turn)
    return seq + 1


def readers_of(valkey: RedisSeen, turn_id: str) -> int:
    [(_, count)] = valkey.pubsub_numsub(keys.channel(turn_id))
    return count


async def until_all_read(followers: Sequence[Follower], api: int) -> None:
    """Each of them reads at this API, and has some more from there."""
    await until(lambda: all(each.api == api for each in followers))
    known = [len(each.seen) for each in followers]
    await until(
        lambda: all(len(each.seen) > n + 5 for each, n in zip(followers, known, strict=True))
    )


async def test_followers_of_an_api_that_ends_go_on_at_another(
    redis: Redis, redis_url: str, valkey: RedisSeen
) -> None:
    driver, enough = TurnDriver(redis), asyncio.Event()
    followers = [Follower() for _ in range(FOLLOWERS)]
    turn_id = await driver.queue()
    async with open_apis(redis_url, 3) as apis, asyncio.TaskGroup() as group:
        talking = group.create_task(keep_talking(driver, turn_id, enough))
        clients = [client for _, client in apis]
        following = [
            group.create_task(each.follow(f"/turns/{turn_id}/events", clients))
            for each in followers
        ]
        (killed, _), (stopped, _), _ = apis

        await until_all_read(followers, api=0)
        before = set(valkey.scan_iter())
        killed.kill()
        await until_all_read(followers, api=1)
        assert readers_of(valkey, turn_id) == 1, "the dead one's subscriptions are gone"
        assert set(valkey.scan_iter()) == before, "and it has left nothing else"

        stopped.terminate()
        async with asyncio.timeout(STOPS_WITHIN_S):
            assert await stopped.wait() == 0
        await until_all_read(followers, api=2)

        enough.set()
        await asyncio.wait(following)
        await until(lambda: readers_of(valkey, turn_id) == 0)

    for follower in followers:
        assert follower.seen == list(range(1, talking.result() + 1))
        assert follower.goodbyes == [1], "only the one that was told to stop says it"
