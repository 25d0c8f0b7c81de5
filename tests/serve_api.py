"""The API under its real server, in the loop of the test."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from api.listener import bind
from api.server import open_server
from api.settings import ApiSettings
from tests.until import until


@asynccontextmanager
async def serve_api(settings: ApiSettings) -> AsyncGenerator[str]:
    """Serves on a free port and yields the base URL."""
    listener = bind("127.0.0.1", 0)
    async with open_server(settings) as server:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await until(lambda: server.started)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def open_api(redis_url: str, **settings: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """Serves the API and yields a client of it."""
    async with (
        serve_api(ApiSettings(REDIS_URL=redis_url, **settings)) as base_url,
        httpx.AsyncClient(base_url=base_url, timeout=30) as client,
    ):
        yield client
