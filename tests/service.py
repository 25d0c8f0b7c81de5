"""The whole service inside a test: the API behind a real socket, the worker beside it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from httpx_sse import aconnect_sse

from api.settings import ApiSettings
from shared import chunks
from shared.chunks import Chunk, Text
from tests.serve_api import serve_api
from worker.main import serve
from worker.settings import WorkerSettings


class Service:
    """A client's view of the service."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def ask(self, text: str, **fields: Any) -> list[Chunk]:
        """Posts a turn and follows it to its end."""
        return await self.follow(await self.post(text, **fields))

    async def post(self, text: str, **fields: Any) -> str:
        """Posts a turn and answers its id."""
        answer = await self.client.post("/turns", json={"text": text, **fields})
        assert answer.status_code == 202, answer.text
        return answer.json()["turn_id"]

    async def follow(self, turn_id: str, after: int = 0) -> list[Chunk]:
        """The chunks above `after`, after checking that they are numbered without a gap."""
        seen: list[Chunk] = []
        headers = {"Last-Event-ID": str(after)} if after else {}
        events = f"/turns/{turn_id}/events"
        async with aconnect_sse(self.client, "GET", events, headers=headers) as source:
            async for event in source.aiter_sse():
                if not event.data:  # what httpx-sse makes of a ping
                    continue
                seq, chunk = chunks.parse(event.data)
                seen.append(chunk)
                assert seq == int(event.id) == after + len(seen)
                assert event.event == chunks.type_of(chunk)
        return seen

    async def turn(self, turn_id: str) -> dict[str, Any]:
        """The turn's record."""
        answer = await self.client.get(f"/turns/{turn_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def wait_for_status(self, turn_id: str, status: str) -> dict[str, Any]:
        """The turn's record once it has that status."""
        while (turn := await self.turn(turn_id))["status"] != status:
            await asyncio.sleep(0.01)
        return turn


def text_of(seen: list[Chunk]) -> str:
    """The main agent's answer as a person reads it."""
    return "".join(
        chunk.content for chunk in seen if isinstance(chunk, Text) and not chunk.metadata.agent
    )


@asynccontextmanager
async def run_api(redis_url: str, **settings: Any) -> AsyncGenerator[Service]:
    """The API on a free port."""
    async with (
        serve_api(ApiSettings(REDIS_URL=redis_url, API_PORT=0, **settings)) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        yield Service(client)


@asynccontextmanager
async def run_worker(
    redis_url: str, llama_url: str, folder: Path, **settings: Any
) -> AsyncGenerator[None]:
    """A worker with its database in `folder`; at the end it is cut, whatever it does."""
    database = folder / "checkpoints.sqlite"
    values = {"REDIS_URL": redis_url, "LLAMA_BASE_URL": llama_url, "CHECKPOINT_DB": database}
    worker = asyncio.create_task(serve(WorkerSettings(**values, **settings), signals=False))
    try:
        yield
        assert not worker.done(), worker.exception()
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


@asynccontextmanager
async def run_service(
    redis_url: str, llama_url: str, folder: Path, **settings: Any
) -> AsyncGenerator[Service]:
    """API and worker."""
    async with run_worker(redis_url, llama_url, folder, **settings), run_api(redis_url) as service:
        yield service
