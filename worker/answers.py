"""Answers the API's questions, in the middle of a turn too."""

import asyncio
import logging

from shared import requests
from shared.errors import RedisAway
from shared.redis import Redis
from shared.requests import Request
from worker.insist import insist
from worker.llama import LlamaServer

log = logging.getLogger(__name__)


class Answers:
    """Answers each question in a task of its own, so that a slow one delays no other."""

    def __init__(self, redis: Redis, llama: LlamaServer) -> None:
        self._redis = redis
        self._llama = llama

    async def serve(self) -> None:
        """Answers for ever."""
        async with asyncio.TaskGroup() as answering:
            while True:
                request = await insist(lambda: requests.next_request(self._redis))
                answering.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            await requests.answer(self._redis, request, await self._llama.status())
        except RedisAway as error:
            log.warning("A question could not be answered: %s", error)
