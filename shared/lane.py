"""What a worker and Redis tell each other of a whole lane, beside its turns."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast
from uuid import uuid4

from shared import jobs, keys, scripts
from shared.record import Lifetimes
from shared.redis import Redis, redis_errors

AT_ONCE = 1000
"""How many threads one script is given."""


class Mark(NamedTuple):
    """What a Redis is known by: as long as it bears the same, it has lost nothing.

    `told`: it has heard what it must know.
    """

    name: str
    told: bool


class Lane:
    """One lane, as its worker sees it. Every method may raise RedisAway."""

    def __init__(self, redis: Redis, lifetimes: Lifetimes, lane: str = keys.LANE) -> None:
        # redis-py types hashes, sets and lists for two kinds of client.
        self._redis = cast(Any, redis)
        self._lifetimes = lifetimes
        self._lane = lane
        self._confirm = scripts.load(redis, "confirm")
        self._put_back = scripts.load(redis, "ended", "queueing", "put_back")
        self._remember = scripts.load(redis, "remember")

    async def read_mark(self) -> Mark | None:
        """The mark that this Redis bears; None if it has been emptied, or started again, which may
        have cost it its last second.
        """
        process, known = await self._recognise()
        name, _, told = known.partition(" ")
        return Mark(name, bool(told)) if name.startswith(process) else None

    async def begin_telling(self) -> str:
        """Before Redis is told what it must know: marks it, and answers the mark."""
        process, known = await self._recognise()
        name = known.partition(" ")[0]
        if not name.startswith(process):
            name = f"{process}-{uuid4().hex}"
        with redis_errors():
            await self._redis.set(keys.known(self._lane), name)
        return name

    async def end_telling(self, name: str) -> bool:
        """After that; False if it has been emptied meanwhile, and must be told again."""
        with redis_errors():
            return bool(await self._confirm(keys=[keys.known(self._lane)], args=[name]))

    async def _recognise(self) -> tuple[str, str]:
        """The server process's own id, and what `known` says."""
        with redis_errors():
            async with self._redis.pipeline(transaction=False) as together:
                together.info("server")
                together.get(keys.known(self._lane))
                server, known = await together.execute()
        return server["run_id"], (known or b"").decode()

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
        threads = list(agents.items())
        for first in range(0, len(threads), AT_ONCE):
            some = threads[first : first + AT_ONCE]
            with redis_errors():
                await self._remember(
                    keys=[keys.thread(thread_id) for thread_id, _ in some],
                    args=[self._lifetimes.turn_s, *(agent for _, agent in some)],
                )

    async def quarantine(self, thread_ids: Collection[str], *, only: bool = False) -> None:
        """Says that these threads take no turns, and if `only`, that all others do."""
        with redis_errors():
            async with self._redis.pipeline(transaction=True) as together:
                if only:
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
