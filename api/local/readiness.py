"""Waiting until what was started can be used."""

import asyncio

import httpx

from api.local.console import Console
from shared.errors import RedisAway
from shared.redis import open_redis, redis_errors

RETRY_S = 0.1
PROBE_S = 5.0
PARTS = ("redis", "worker", "llama")
PROBLEM = "application/problem+json"


async def wait_for_redis(url: str) -> None:
    """Returns when the server answers, its data loaded."""
    async with open_redis(url) as redis:
        while True:
            try:
                with redis_errors():
                    await redis.ping()  # pyright: ignore[reportGeneralTypeIssues, reportUnknownMemberType]
            except RedisAway:
                await asyncio.sleep(RETRY_S)
            else:
                return


async def wait_until_ready(url: str, console: Console) -> None:
    """Returns when a turn would run; tells what is missing, whenever that changes."""
    told: list[str] = []
    # Without the proxy of the environment, which knows nothing of this machine's own addresses.
    async with httpx.AsyncClient(base_url=url, timeout=PROBE_S, trust_env=False) as api:
        while missing := await _missing(api):
            if missing != told:
                console.tell("up", f"waiting for {', '.join(missing)}")
            told = missing
            await asyncio.sleep(RETRY_S)


async def _missing(api: httpx.AsyncClient) -> list[str]:
    try:
        answer = await api.get("/health/ready")
    except httpx.TransportError:
        return ["api"]
    if answer.is_success:
        return []
    if answer.headers.get("content-type") != PROBLEM:
        return ["api"]
    readiness = answer.json()
    return [part for part in PARTS if readiness.get(part) != "ok"] or ["api"]
