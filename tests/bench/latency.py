"""How long until a turn is taken and heard, beside the same graph without the service.

`uv run python -m tests.bench.latency [TURNS]` prints medians and 95th percentiles in milliseconds
over so many turns (100), each on a thread of its own, against a scripted model server that answers
at once. All parts are processes of their own, as in service, except model server and client.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import httpx
from httpx_sse import aconnect_sse
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from tests.fake_llama import FakeLlama, Reply
from tests.processes import run_processes
from tests.valkey import run_valkey
from worker.agents.registry import Deps, build_agents
from worker.graph import Graph, stream_parts
from worker.llm import open_model
from worker.settings import WorkerSettings

TURNS = 100
WARM_UP = 10


async def measure_service(client: httpx.AsyncClient) -> tuple[float, float]:
    """Milliseconds from the POST to the worker's claim, and to the first text read by the client.

    The claim's time is Redis' own, in whole milliseconds, by the clock of this machine.
    """
    posted_at = time.time() * 1000
    turn, heard_at = "", 0.0
    async with aconnect_sse(client, "POST", "/turns/stream", json={"text": "Hello."}) as source:
        turn = source.response.headers["X-Turn-Id"]
        async for event in source.aiter_sse():
            if event.event == "text" and not heard_at:
                heard_at = time.time() * 1000
    record = (await client.get(f"/turns/{turn}")).json()
    claimed_at = datetime.fromisoformat(record["started_at"]).timestamp() * 1000
    return claimed_at - posted_at, heard_at - posted_at


async def measure_graph(graph: Graph) -> float:
    """Milliseconds from the graph's start to its first text."""
    given = {"messages": [{"role": "user", "content": "Hello."}]}
    began, first = time.perf_counter(), 0.0
    parts = stream_parts(graph, given, {"configurable": {"thread_id": str(uuid4())}})
    async for _, mode, data in parts:
        is_text = mode == "messages" and isinstance(data[0], AIMessageChunk) and data[0].text
        if is_text and not first:
            first = time.perf_counter() - began
    return first * 1000


def report(name: str, figures: list[float]) -> None:
    """One line: median and 95th percentile without the warm-up."""
    counted = sorted(figures[WARM_UP:])
    median, high = statistics.median(counted), counted[int(0.95 * len(counted))]
    sys.stdout.write(f"{name:<42} median {median:6.1f} ms   95 % {high:6.1f} ms\n")


async def measure(client: httpx.AsyncClient, graph: Graph, turns: int) -> None:
    """Measures by turns, so that both sides share what the machine does beside."""
    claims, texts, graphs = [list[float]() for _ in range(3)]
    for _ in range(WARM_UP + turns):
        claim, text = await measure_service(client)
        claims.append(claim)
        texts.append(text)
        graphs.append(await measure_graph(graph))
    report("POST to claim", claims)
    report("POST to first text read by the client", texts)
    report("the same graph in process, to first text", graphs)
    added = [text - alone for text, alone in zip(texts, graphs, strict=True)]
    report("added by the service, pair by pair", added)


async def main(turns: int) -> None:
    """Starts all parts and measures."""
    with tempfile.TemporaryDirectory(prefix="tk") as name:
        folder = Path(name)
        async with (
            FakeLlama(lambda _: Reply(content="Hello there.")) as llama,
            run_valkey(folder) as redis_url,
            run_processes(redis_url, llama.base_url, str(folder / "served.sqlite")) as client,
        ):
            alone = folder / "alone.sqlite"
            settings = WorkerSettings(LLAMA_BASE_URL=llama.base_url, CHECKPOINT_DB=alone)
            async with (
                AsyncSqliteSaver.from_conn_string(str(alone)) as saver,
                open_model(settings) as model,
            ):
                agents = await build_agents(Deps(model, saver, settings))
                await measure(client, agents["chat"], turns)


def read_arguments() -> argparse.Namespace:
    """What the command is given."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.latency", description=__doc__)
    parser.add_argument(
        "turns", metavar="TURNS", nargs="?", type=int, default=TURNS, help="%(default)s by default"
    )
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(read_arguments().turns))
