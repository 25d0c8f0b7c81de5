"""Hears what the API asks for, and looks for what it may have asked for unheard."""

import asyncio
import logging

from shared.heartbeat import RENEW_S
from shared.redis import Redis
from worker.bookkeeper import Bookkeeper
from worker.control import Orders, hear_control
from worker.insist import insist
from worker.memory import Memory
from worker.recovery import Recovery
from worker.settlement import UNUSABLE
from worker.slot_worker import SlotWorker
from worker.turns import TurnRunner

log = logging.getLogger(__name__)


class Lookout:
    """Wakes whom it concerns."""

    def __init__(
        self,
        worker: SlotWorker,
        runner: TurnRunner,
        book: Bookkeeper,
        recovery: Recovery,
        memory: Memory,
    ) -> None:
        self._worker = worker
        self._runner = runner
        self._book = book
        self._recovery = recovery
        self._memory = memory
        self._alone = asyncio.Lock()

    async def hear(self, redis: Redis) -> None:
        """Listens for ever."""
        orders: Orders = {
            "wake": lambda _: self._worker.wake(),
            "cancel": self._runner.cancel,
            "unrecorded": lambda _: self._book.wake(),
        }
        await hear_control(redis, orders, self.catch_up)

    async def keep_looking(self) -> None:
        """Looks for ever: a connection may be dead without having been closed."""
        while True:
            await insist(self.catch_up)
            await asyncio.sleep(RENEW_S)

    async def catch_up(self) -> None:
        """Looks once; may raise RedisAway."""
        async with self._alone:
            try:
                if await self._recovery.refresh(self._runner.held_id):
                    self._memory.keep_told()
                await self._memory.pay()
                await self._memory.forget_told()
            except UNUSABLE as error:  # it is looked at again
                log.warning("Redis and the database are not in order yet: %s", error)
        self._worker.wake()
        self._book.wake()
        self._runner.probe()
