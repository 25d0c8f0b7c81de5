"""Waiting until what was started can be used."""

import asyncio
from contextlib import suppress

import httpx

from api.local.console import Console
from api.local.options import Options
from shared.errors import RedisAway
from shared.heartbeat import read_heartbeat
from shared.lock import describe_process
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


async def wait_for_worker(url: str, pid: int) -> None:
    """Returns when this worker, and not another one on the same Redis, is alive."""
    ours = describe_process(pid)
    async with open_redis(url) as redis:
        while True:
            with suppress(RedisAway):
                beat = await read_heartbeat(redis)
                if beat and beat.worker == ours:
                    return
            await asyncio.sleep(RETRY_S)


async def wait_until_ready(url: str, options: Options, console: Console) -> None:
    """Returns when a turn would run; tells what is missing, whenever that changes."""
    told: list[str] = []
    # Without the proxy of the environment, which knows nothing of this machine's own addresses.
    async with httpx.AsyncClient(base_url=url, timeout=PROBE_S, trust_env=False) as api:
        while missing := await _missing(api):
            if missing != told:
                names = ", ".join(_describe(part, options) for part in missing)
                console.tell("up", f"waiting for {names}")
            told = missing
            await asyncio.sleep(RETRY_S)


def _describe(part: str, options: Options) -> str:
    """The part, with the setting that says where one of one's own should be."""
    if part == "redis" and options.redis_url:
        return "redis (REDIS_URL)"
    if part == "llama" and options.llama_base_url:
        return "llama (LLAMA_BASE_URL)"
    return part


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
