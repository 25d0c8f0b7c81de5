"""What a worker and Redis tell each other of a whole lane, beside its turns."""

from collections.abc import Collection, Mapping
from typing import Any, cast

from shared import jobs, keys, scripts
from shared.record import Lifetimes
from shared.redis import Redis, redis_errors


class Lane:
    """One lane, as its worker sees it. Every method may raise RedisAway."""

    def __init__(self, redis: Redis, lifetimes: Lifetimes, lane: str = keys.LANE) -> None:
        # redis-py types hashes, sets and lists for two kinds of client.
        self._redis = cast(Any, redis)
        self._lifetimes = lifetimes
        self._lane = lane
        self._put_back = scripts.load(redis, "put_back")
        self._remember = scripts.load(redis, "remember")

    async def is_known(self) -> bool:
        """Redis has all that `set_known` was said after; False when it has been emptied."""
        with redis_errors():
            return bool(await self._redis.exists(keys.known(self._lane)))

    async def set_known(self) -> None:
        """Redis has been told what it must know of before."""
        with redis_errors():
            await self._redis.set(keys.known(self._lane), 1)

    async def left_running(self) -> str | None:
        """The turn that holds the slot: before the first claim, one that a dead worker left."""
        with redis_errors():
            left = cast(bytes | None, await self._redis.get(keys.running(self._lane)))
        return left.decode() if left else None

    async def put_back(self, turn_id: str) -> None:
        """Sees that a turn that has not ended has its place in the queue, and its job."""
        with redis_errors():
            await self._put_back(
                keys=[
                    *(keys.turn(turn_id), keys.queue(self._lane)),
                    *(keys.running(self._lane), keys.job(turn_id)),
                ],
                args=[turn_id, jobs.encode_job(turn_id)],
            )

    async def remember_agents(self, agents: Mapping[str, str]) -> None:
        """Has Redis know again which agent a thread keeps."""
        for thread_id, agent in agents.items():
            with redis_errors():
                await self._remember(
                    keys=[keys.thread(thread_id)], args=[agent, self._lifetimes.turn_s]
                )

    async def set_quarantined(self, thread_ids: Collection[str]) -> None:
        """Says which threads take no turns: these and no others."""
        with redis_errors():
            async with self._redis.pipeline(transaction=True) as together:
                together.delete(keys.quarantined(self._lane))
                if thread_ids:
                    together.sadd(keys.quarantined(self._lane), *thread_ids)
                await together.execute()

    async def next_unrecorded(self) -> bytes | None:
        """The oldest turn that ended without the worker; listed until `drop_unrecorded`."""
        with redis_errors():
            return await self._redis.lindex(keys.unrecorded(self._lane), 0)

    async def drop_unrecorded(self, record: bytes) -> None:
        """This one is in the ledger; dropping it again does nothing."""
        with redis_errors():
            await self._redis.lrem(keys.unrecorded(self._lane), 1, record)
