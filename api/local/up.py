"""`turnkeeper up`: everything on this machine, in one terminal."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

from api.local.console import Console
from api.local.folder import make_folder, own_folder
from api.local.household import Household
from api.local.interruption import Interruption
from api.local.llama import llama_part, reserve_port
from api.local.options import Options
from api.local.readiness import wait_for_redis, wait_until_ready
from api.local.service import api_part, service_environment, worker_part
from api.local.valkey import socket_in, valkey_part


async def up(options: Options, interruption: Interruption) -> None:
    """Serves until it is told to stop; raises CannotStart or PartDied, nothing left running."""
    stop = asyncio.Event()
    console = Console(stop)
    with interruption.sets(stop):
        serving = asyncio.create_task(_serve(options, console))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not serving.done():
            console.tell("up", "stopping")
            serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def _serve(options: Options, console: Console) -> None:
    async with own_folder(options.data) as lock:
        make_folder(options.valkey_folder)
        with socket_in(options.valkey_folder) as socket, reserve_port() as llama_port:
            async with Household(lock.fileno, console) as household:
                beginning = _begin(options, console, household, socket, llama_port)
                await household.live(beginning)


async def _begin(
    options: Options, console: Console, household: Household, socket: Path, llama_port: int
) -> None:
    began = time.monotonic()
    console.tell("up", f"starting {options.summary}; the data is in {options.data}")
    environment = service_environment(options, socket, llama_port)
    if options.redis_url is None:
        await household.start(valkey_part(options.valkey_folder, socket))
        await wait_for_redis(environment["REDIS_URL"])
    if options.model is not None:
        await household.start(llama_part(options.model, llama_port))
    await household.start(worker_part(environment), api_part(environment))
    await wait_until_ready(options.url, console)
    announce(console, options, time.monotonic() - began)


def announce(console: Console, options: Options, seconds: float) -> None:
    """The address, and a line that can be pasted into another terminal."""
    token = ' -H "Authorization: Bearer $API_TOKEN"' if options.guarded else ""
    body = """'{"text": "Say hello in five words."}'"""
    console.tell("up", f"ready in {seconds:.1f} s at {options.url}; Ctrl-C stops everything")
    console.write(f"\n  curl -N{token} {options.url}/turns/stream -d {body}\n")
