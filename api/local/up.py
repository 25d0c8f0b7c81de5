"""`turnkeeper up`: everything on this machine, in one terminal."""

import asyncio
import time
from contextlib import closing, suppress

from api.local.console import Console
from api.local.folder import make_folder, own_folder
from api.local.household import Household
from api.local.interruption import Interruption
from api.local.llama import llama_part
from api.local.options import Options
from api.local.places import Places, reserve_places
from api.local.readiness import wait_for_redis, wait_for_worker, wait_until_ready
from api.local.service import api_part, worker_part
from api.local.valkey import socket_url, valkey_part
from shared.lock import Lock


async def up(options: Options, interruption: Interruption) -> None:
    """Serves until it is told to stop; raises CannotStart or PartDied, nothing left running."""
    stop = asyncio.Event()
    with interruption.sets(stop), closing(Console(stop)) as console:
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
    async with own_folder(options.data, console) as lock:
        make_folder(options.valkey_folder)
        with reserve_places(options) as places:
            async with Household(console) as household:
                await household.live(_begin(options, places, household, lock, console))


async def _begin(
    options: Options, places: Places, household: Household, lock: Lock, console: Console
) -> None:
    began = time.monotonic()
    console.tell("up", f"starting {options.summary}; the data is in {options.data}")
    if options.redis_url is None:
        await household.start(valkey_part(options.valkey_folder, places.valkey, lock.fileno))
        await wait_for_redis(socket_url(places.valkey))
    if options.model is not None:
        await household.start(llama_part(options.model, places.llama_port))
    worker, _ = await household.start(worker_part(options, places), api_part(options, places))
    url = places.url
    places.api.close()  # it is the API's now
    await wait_until_ready(url, options, console)
    await wait_for_worker(options.redis_url or socket_url(places.valkey), worker.pid)
    console.tell("up", f"ready in {time.monotonic() - began:.1f} s at {url}, described at /schema")
    console.write(f"\n  {_example(url, guarded=options.guarded)}\n")
    console.tell("up", "Ctrl-C stops it all")


def _example(url: str, *, guarded: bool) -> str:
    """A line that can be pasted into another terminal."""
    token = ' -H "Authorization: Bearer $API_TOKEN"' if guarded else ""
    body = """'{"text": "Say hello in five words."}'"""
    return f"curl -N{token} {url}/turns/stream -d {body}"
