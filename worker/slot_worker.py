"""arq's worker, made to hold one slot: it wakes at once, outlives Redis and stops in order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager, suppress
from signal import Signals
from typing import Any, cast

from arq.connections import ArqRedis
from arq.worker import Worker, func
from redis.exceptions import WatchError

from shared import jobs, keys
from shared.errors import RedisAway
from shared.redis import AWAY, Redis, connection_pool, listen
from worker.insist import RETRY_S

IDLE_S = 0.5
"""How long a wake-up that was missed can delay a turn."""

UNLIMITED_TRIES = 2**31 - 1
"""arq drops a job that was tried too often without telling its function."""

UNLIMITED_S = 7 * 24 * 3600
"""A turn's time limit is its own affair; arq's would lose the turn."""

GRACE_S = 8
"""What a running turn has to end in, once the worker is told to stop."""

log = logging.getLogger(__name__)


class SlotWorker(Worker):
    """Runs the turns of one lane, one after another.

    `_poll_iteration` and `_release_sem_dec_counter_on_complete` are arq's private methods:
    tests/test_slot_worker.py fails when they change.
    """

    def __init__(
        self,
        redis_url: str,
        run_turn: Callable[[str], Awaitable[None]],
        stop_turn: Callable[[], None],
        *,
        lane: str = keys.LANE,
        handle_signals: bool = True,
    ) -> None:
        async def run(ctx: dict[str, Any], turn_id: str) -> None:
            await run_turn(turn_id)

        super().__init__(
            functions=[func(run, name=jobs.FUNCTION, max_tries=UNLIMITED_TRIES)],
            queue_name=keys.queue(lane),
            redis_pool=ArqRedis(connection_pool(redis_url)),
            max_jobs=1,
            queue_read_limit=1,  # only ever the first: none overtakes it when its pick-up fails
            poll_delay=0,
            job_timeout=UNLIMITED_S,
            job_completion_wait=GRACE_S,
            keep_result=0,
            log_results=False,
            job_serializer=jobs.encode_json,
            job_deserializer=jobs.decode_json,
            handle_signals=handle_signals,
        )
        self._stop_turn = stop_turn
        self._wake = asyncio.Event()
        self._stopping = False
        self._unsure = False

    async def run_until_stopped(self) -> None:
        """Runs turns until a signal, and closes what arq opened."""
        try:
            while not self._stopping:
                with self._redis_may_go():
                    await self.async_run()
                await asyncio.sleep(RETRY_S)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        finally:
            await self.close()

    async def hear_control(self, redis: Redis, lane: str = keys.LANE) -> None:
        """Listens for wake-ups for ever."""
        while True:
            with suppress(RedisAway):
                async with aclosing(listen(redis, keys.control(lane))) as messages:
                    async for _ in messages:
                        self._wake.set()
            await asyncio.sleep(RETRY_S)

    async def _poll_iteration(self) -> None:
        self._wake.clear()
        with self._redis_may_go():
            if self._unsure or any(_failed(task) for task in self.tasks.values()):
                await self._forget_pick_ups()
            await super()._poll_iteration()
            # A turn that waits while none runs was lost while it was picked up.
            self._unsure = not self.tasks and bool(await self.pool.zcard(self.queue_name))
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S):
                await self._wake.wait()

    def _release_sem_dec_counter_on_complete(self) -> None:
        super()._release_sem_dec_counter_on_complete()
        self._wake.set()

    @contextmanager
    def _redis_may_go(self) -> Generator[None]:
        try:
            yield
        except (*AWAY, WatchError) as error:
            log.warning("Redis is away: %s", error)
            self._unsure = True

    async def _forget_pick_ups(self) -> None:
        """After a broken line, what arq had begun to pick up is free again.

        arq counts such a job as running for ever, here and in Redis.
        """
        if any(not task.done() for task in self.tasks.values()):
            return
        waiting: list[bytes] = await cast(Any, self.pool).zrange(self.queue_name, 0, -1)
        if waiting:
            await self.pool.delete(*(keys.job_in_progress(turn.decode()) for turn in waiting))
        self.job_counter = 0
        self.sem = asyncio.BoundedSemaphore(self.max_jobs + 1)

    async def finish_job(self, *args: Any, **kwargs: Any) -> None:
        """Tells Redis that the job is over, as often as it takes."""
        while True:
            with self._redis_may_go():
                await super().finish_job(*args, **kwargs)
                return
            if self._stopping:  # the next worker puts it in order
                return
            await asyncio.sleep(RETRY_S)

    def handle_sig_wait_for_completion(self, signum: Signals) -> None:
        """Stops in order, once: a second signal must not interrupt the first."""
        if self._stopping:
            return
        self._stopping = True
        log.info("Stopping on %s.", Signals(signum).name)
        self._stop_turn()
        self._wake.set()
        super().handle_sig_wait_for_completion(signum)

    async def close(self) -> None:
        """Cuts what still runs and closes the connections; arq's own leaves them open then."""
        for task in self.tasks.values():
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks.values())
        with suppress(*AWAY):
            await self.pool.delete(self.health_check_key)
        await self.pool.aclose(close_connection_pool=True)


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None
