"""A slot worker inside a test, on a function of the test's own."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from signal import SIGTERM

from shared.redis import Redis, open_redis
from worker.control import hear_control
from worker.slot_worker import SlotWorker


class Runs:
    """A turn's work: it takes note of who runs, and lasts until `hold` is set free."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.stops = 0
        self.most_at_once = 0
        self.free = asyncio.Event()
        self.free.set()

    async def run(self, turn_id: str) -> None:
        self.begun.append(turn_id)
        at_once = len(self.begun) - len(self.ended) - len(self.cancelled)
        self.most_at_once = max(self.most_at_once, at_once)
        try:
            await self.free.wait()
        except asyncio.CancelledError:
            self.cancelled.append(turn_id)
            raise
        self.ended.append(turn_id)

    def stop(self) -> None:
        self.stops += 1


async def _hear(redis: Redis, worker: SlotWorker) -> None:
    async def catch_up() -> None:
        worker.wake()

    await hear_control(redis, {"wake": lambda _: worker.wake()}, catch_up)


@asynccontextmanager
async def working(
    url: str, run: Callable[[str], Awaitable[None]], stop: Callable[[], None] = lambda: None
) -> AsyncGenerator[tuple[SlotWorker, asyncio.Task[None]]]:
    """The worker and the task that ends when it has stopped, which the end of the block awaits."""
    async with open_redis(url) as redis:
        worker = SlotWorker(url, run, stop, handle_signals=False)
        hearing = asyncio.create_task(_hear(redis, worker))
        running = asyncio.create_task(worker.run_until_stopped())
        try:
            yield worker, running
            worker.handle_sig_wait_for_completion(SIGTERM)
            await asyncio.wait_for(asyncio.shield(running), 30)
        finally:
            for task in (running, hearing):
                task.cancel()
            await asyncio.wait({running, hearing}, timeout=5)
