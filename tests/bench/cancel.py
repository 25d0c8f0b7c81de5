"""How long from the request to cancel until the model server sees its client leave.

`uv run python -m tests.bench.cancel [CANCELS]` prints medians and 99th percentiles in milliseconds
over so many cancels (200), half of them in the middle of an answer, half in a prompt's prefill. All
parts are processes of their own, as in service, except model server and client.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
from httpx_sse import aconnect_sse

from tests.fake_llama import Call, FakeLlama, Reply
from tests.fake_llama.script import Body
from tests.processes import run_processes
from tests.valkey import run_valkey

CANCELS = 200
WARM_UP = 5

IN_DECODE = Reply(content="one two three four", hang_after=2, release=asyncio.Event())
IN_PREFILL = Reply(content="never said", gate=asyncio.Event())


def reply(body: Body) -> Reply:
    """What the last message asks for."""
    return IN_DECODE if body["messages"][-1]["content"] == "decode" else IN_PREFILL


async def measure(client: httpx.AsyncClient, llama: FakeLlama, phase: str) -> tuple[float, float]:
    """Milliseconds from the request to the disconnect, and to the `cancelled` that is read."""
    before = len(llama.calls)
    posted = await client.post("/turns", json={"text": phase, "thread_id": phase})
    turn = posted.json()["turn_id"]
    await llama.wait_for(lambda: _is_held(llama.calls[before:], phase))
    async with aconnect_sse(client, "GET", f"/turns/{turn}/events") as source:
        requested_at = time.monotonic()
        cancelling = asyncio.create_task(client.post(f"/turns/{turn}/cancel"))
        last = [event.event async for event in source.aiter_sse()][-1]
        told_at = time.monotonic()
        assert (last, (await cancelling).status_code) == ("cancelled", 202)
    [call] = llama.calls[before:]
    await llama.wait_for(lambda: call.ended_at)
    assert call.ended_at
    return (call.ended_at - requested_at) * 1000, (told_at - requested_at) * 1000


def _is_held(calls: list[Call], phase: str) -> bool:
    return bool(calls) and (calls[0].n_decoded >= 2 if phase == "decode" else bool(calls[0].status))


def report(name: str, figures: list[float]) -> None:
    """One line."""
    counted = sorted(figures)
    median, high = statistics.median(counted), counted[int(0.99 * len(counted))]
    line = f"{name:<52} median {median:6.1f} ms   99 % {high:6.1f} ms   most {counted[-1]:6.1f} ms"
    sys.stdout.write(line + "\n")


async def main(cancels: int) -> None:
    """Starts all parts and measures."""
    with tempfile.TemporaryDirectory(prefix="tk") as name:
        folder = Path(name)
        async with (
            FakeLlama(reply) as llama,
            run_valkey(folder) as redis_url,
            run_processes(redis_url, llama.base_url, str(folder / "c.sqlite")) as client,
        ):
            for phase in ("decode", "prefill"):
                pairs = [await measure(client, llama, phase) for _ in range(WARM_UP + cancels // 2)]
                seen, told = zip(*pairs[WARM_UP:], strict=True)
                report(f"in {phase}: request to disconnect at the model server", list(seen))
                report(f"in {phase}: request to `cancelled` read by a follower", list(told))


def read_arguments() -> argparse.Namespace:
    """What the command is given."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cancel", description=__doc__)
    parser.add_argument(
        "cancels",
        metavar="CANCELS",
        nargs="?",
        type=int,
        default=CANCELS,
        help="%(default)s by default",
    )
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(read_arguments().cancels))
