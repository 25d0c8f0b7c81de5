"""Those who post, cancel and follow turns, and do not give up when the line breaks."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import httpx
from httpx_sse import aconnect_sse

from shared import chunks
from tests.chaos.history import Numbered, Told

AGAIN_S = 0.02
AWAY = {500, 503}
"""What is answered while Redis is away. Anything else that is not expected is a fault."""

LEAVES = 0.01
"""How often a follower leaves after a chunk, to come again."""


class People:
    """`random`: which API they ask."""

    def __init__(self, client: httpx.AsyncClient, urls: list[str], random: Random) -> None:
        self._client = client
        self._urls = urls
        self._random = random

    async def post(self, turn: Told, key: str) -> None:
        """It is accepted, once, however often this must be said."""
        body = {"text": turn.text, "thread_id": turn.thread_id}
        turn.sent = time.monotonic()
        answer = await self._ask("POST", "/turns", json=body, headers={"Idempotency-Key": key})
        turn.answered = time.monotonic()
        assert answer.status_code in {200, 202}, answer.text
        turn.turn_id = answer.json()["turn_id"]

    async def cancel(self, turn: Told) -> None:
        """Asks for it until somebody has heard."""
        answer = await self._ask("POST", f"/turns/{turn.turn_id}/cancel")
        assert answer.status_code in {200, 202}, answer.text
        turn.cancel = answer.json()["status"]

    async def read(self, turn: Told) -> None:
        """Its record, and its whole stream once more."""
        answer = await self._ask("GET", f"/turns/{turn.turn_id}")
        assert answer.status_code == 200, answer.text
        turn.record = answer.json()
        await self._follow(turn, turn.log, lambda: False)

    async def follow(self, turn: Told, random: Random) -> None:
        """Its stream to the end, now and then left and taken up again."""
        await self._follow(turn, turn.seen, lambda: random.random() < LEAVES)

    async def _follow(self, turn: Told, seen: Numbered, leaves: Callable[[], bool]) -> None:
        while not (seen and seen[-1][1].completed):
            try:
                await self._listen(turn, seen, leaves)
            except httpx.TransportError:
                await asyncio.sleep(AGAIN_S)

    async def _listen(self, turn: Told, seen: Numbered, leaves: Callable[[], bool]) -> None:
        headers = {"Last-Event-ID": str(seen[-1][0])} if seen else {}
        url = f"{self._choose()}/turns/{turn.turn_id}/events"
        async with aconnect_sse(self._client, "GET", url, headers=headers) as source:
            if (status := source.response.status_code) in AWAY:
                await asyncio.sleep(AGAIN_S)
                return
            assert status == 200, f"turn {turn.number} after {headers}: {status}"
            async for event in source.aiter_sse():
                if event.data:
                    seen.append(chunks.parse(event.data))
                    if leaves():
                        return

    async def _ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        while True:
            try:
                answer = await self._client.request(method, self._choose() + path, **request)
            except httpx.TransportError:
                pass
            else:
                if answer.status_code not in AWAY:
                    return answer
            await asyncio.sleep(AGAIN_S)

    def _choose(self) -> str:
        return self._random.choice(self._urls)


@asynccontextmanager
async def gather_people(urls: list[str], random: Random) -> AsyncGenerator[People]:
    """They ask these APIs."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=30, limits=limits) as client:
        yield People(client, urls, random)
