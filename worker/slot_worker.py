"""arq's worker, made to hold one slot: it wakes at once, outlives Redis and stops in order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from signal import Signals
from typing import Any, cast

from arq.connections import ArqRedis
from arq.worker import RetryJob, Worker, func
from redis.exceptions import ResponseError

from shared import jobs, keys
from shared.errors import Fenced
from shared.redis import AWAY, connection_pool
from worker.errors import BrokenOff
from worker.insist import RETRY_S

IDLE_S = 0.5
"""How long a wake-up that was missed can delay a turn."""

UNLIMITED_TRIES = 2**31 - 1
"""arq drops a job that was tried too often without telling its function."""

UNLIMITED_S = 7 * 24 * 3600
"""A turn's time limit is its own affair; arq's would lose the turn."""

GRACE_S = 10
"""What a running turn has to end in, once the worker is told to stop; see worker/stop.py for what
comes before that.
"""

GOODBYE_S = 1.0
"""What is left behind in Redis without a goodbye goes away by itself."""

log = logging.getLogger(__name__)


class SlotWorker(Worker):
    """Runs the turns of one lane, one after another.

    `_poll_iteration` is arq's private method: tests/test_arq.py fails when it changes.
    """

    def __init__(
        self,
        redis_url: str,
        run_turn: Callable[[str], Awaitable[None]],
        stop_turn: Callable[[], None],
        *,
        lane: str = keys.LANE,
        handle_signals: bool = False,
    ) -> None:
        async def run(ctx: dict[str, Any], turn_id: str) -> None:
            try:
                await run_turn(turn_id)
            except BrokenOff as error:
                raise RetryJob from error
            except Fenced as error:
                # Redis came back without what it knew, or another worker runs: the next claim
                # answers which. arq would take the turn from the queue.
                await asyncio.sleep(RETRY_S)
                raise RetryJob from error

        super().__init__(
            functions=[func(run, name=jobs.FUNCTION, max_tries=UNLIMITED_TRIES)],
            queue_name=keys.queue(lane),
            redis_pool=ArqRedis(connection_pool(redis_url)),
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
        self._away = False

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

    def wake(self) -> None:
        """There may be a turn to run."""
        self._wake.set()

    async def _poll_iteration(self) -> None:
        self._wake.clear()
        with self._redis_may_go():
            await self._collect()
            if self.allow_pick_jobs and not self.tasks:
                await self._pick_up()
                self._redis_is_there()
            await self.heart_beat()
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S):
                await self._wake.wait()

    async def _pick_up(self) -> None:
        """Begins with the first of the queue, and no other when that fails.

        arq asks for scores up to now, by the worker's clock; these are of Redis' own, and nothing
        is put off. The lane has no other worker: arq's mark that a job is picked up would only be
        in the way of the next pick-up when the line to Redis breaks.
        """
        first: list[bytes] = await cast(Any, self.pool).zrange(self.queue_name, 0, 0)
        turn_id = await self._read_id(first[0]) if first else None
        if turn_id is None:
            return
        # Whatever stands there is not read: for what it does not understand, arq drops the turn.
        # The job of a turn that has just ended keeps its end, too.
        await self.pool.set(keys.job(turn_id), jobs.encode_job(turn_id), keepttl=True)
        self.tasks[turn_id] = task = self.loop.create_task(self.run_job(turn_id, 0))
        task.add_done_callback(lambda _: self.wake())

    async def _collect(self) -> None:
        for turn_id, task in list(self.tasks.items()):
            if task.done():
                del self.tasks[turn_id]
                await self._check(turn_id, task)

    async def _check(self, turn_id: str, task: asyncio.Task[Any]) -> None:
        """Raises that Redis is away; anything else that arq failed with costs only this job."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, (*AWAY, ResponseError)):
            raise error
        if error:
            log.error("Job %s is dropped: arq failed with %s.", turn_id, type(error).__name__)
            await self.finish_failed_job(turn_id, None)

    async def _read_id(self, raw: bytes) -> str | None:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            log.error("The queue holds what is no turn: %r.", raw)
            await self.pool.zrem(self.queue_name, raw)
            return None

    @contextmanager
    def _redis_may_go(self) -> Generator[None]:
        try:
            yield
        except (*AWAY, ResponseError) as error:
            if not self._away:
                log.warning("Redis is away: %s", error)
            self._away = True

    def _redis_is_there(self) -> None:
        if self._away:
            log.info("Redis is back.")
        self._away = False

    async def finish_job(self, *args: Any, **kwargs: Any) -> None:
        """Tells Redis that the job is over, as often as it takes."""
        while True:
            with self._redis_may_go():
                await super().finish_job(*args, **kwargs)
                self._redis_is_there()
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
            await asyncio.wait(self.tasks.values(), timeout=GRACE_S)
        with suppress(*AWAY):  # a TimeoutError too
            async with asyncio.timeout(GOODBYE_S):
                await self.pool.delete(self.health_check_key)
        await self.pool.aclose(close_connection_pool=True)
