"""The API under its real server, in the loop of the test."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from api.server import bind, open_server
from api.settings import ApiSettings

TIMEOUT_S = 20


def api_settings(redis_url: str, **changes: Any) -> ApiSettings:
    """Settings for a test, not touched by the environment's."""
    return ApiSettings.model_validate({"REDIS_URL": redis_url, **changes})


@asynccontextmanager
async def serve_api(settings: ApiSettings) -> AsyncGenerator[str]:
    """Serves on a free port and yields the base URL."""
    listener = bind("127.0.0.1", 0)
    async with open_server(settings) as server:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await wait_until(lambda: server.started)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def open_api(settings: ApiSettings) -> AsyncGenerator[httpx.AsyncClient]:
    """Serves the API and yields a client of it."""
    async with (
        serve_api(settings) as base_url,
        httpx.AsyncClient(base_url=base_url, timeout=TIMEOUT_S) as client,
    ):
        yield client


async def wait_until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Returns once the condition holds; TimeoutError when it does not in TIMEOUT_S."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await _holds(condition):
            await asyncio.sleep(0.01)


async def _holds(condition: Callable[[], bool | Awaitable[bool]]) -> bool:
    answer = condition()
    return answer if isinstance(answer, bool) else await answer
