"""The worker as a process: how it refuses to start, stops and is found again after a crash."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from shared.chunks import type_of
from shared.heartbeat import read_heartbeat
from shared.redis import Redis
from tests.fake_llama import FakeLlama, Reply
from tests.processes import hammer, run_process
from tests.service import Service, run_api, text_of


async def run_to_its_end(*flags: str, **environment: str) -> tuple[int | None, str]:
    """Exit code and standard error of a worker that ends by itself."""
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "worker", *flags), env={**os.environ, **environment}, stderr=PIPE
    )
    _, said = await worker.communicate()
    return worker.returncode, said.decode()


@pytest.mark.parametrize(
    ("environment", "exit_code", "line"),
    [
        ({"STEP_LIMIT": "many"}, 2, "turnkeeper: STEP_LIMIT: "),
        ({"REDIS_URL": "http://127.0.0.1"}, 2, "turnkeeper: REDIS_URL: "),
        ({"LLAMA_EXTRA_BODY": "{"}, 2, "turnkeeper: LLAMA_EXTRA_BODY: "),
        ({"AGENTS": "mine=no.such.module:build"}, 2, "turnkeeper: AGENTS: "),
        ({"CHECKPOINT_DB": "/dev/null/x/db"}, 3, "Not a directory"),
        ({"CHECKPOINT_DB": "/proc"}, 3, "Is a directory"),
    ],
)
async def test_what_it_cannot_use_is_said_in_one_line(
    environment: dict[str, str], exit_code: int, line: str, redis_url: str, tmp_path: Path
) -> None:
    usable = {"REDIS_URL": redis_url, "CHECKPOINT_DB": str(tmp_path / "db"), "LOG_LEVEL": "ERROR"}
    code, said = await run_to_its_end(**{**usable, **environment})
    assert code == exit_code, said
    assert line in said
    assert said.count("\n") == 1


async def test_a_second_worker_on_the_same_database_names_the_first(
    redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    settings = {"REDIS_URL": redis_url, "CHECKPOINT_DB": str(tmp_path / "db"), "LOG_LEVEL": "ERROR"}
    async with run_process("worker", **settings) as first:
        await wait_for_worker(redis)
        code, said = await run_to_its_end(**settings)
    assert code == 1
    assert f"process {first.pid} on " in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_can_be_stopped_before_it_has_begun(tmp_path: Path, number: int) -> None:
    settings = {"REDIS_URL": f"unix://{tmp_path}/no.sock", "CHECKPOINT_DB": str(tmp_path / "db")}
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "worker"), env={**os.environ, **settings}, stderr=PIPE
    )
    assert worker.stderr
    while b"Redis cannot be reached" not in await worker.stderr.readline():
        assert worker.returncode is None
    worker.send_signal(number)
    _, said = await worker.communicate()
    assert worker.returncode == 0
    assert b"Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_after_signal_changes_nothing(
    redis_url: str, redis: Redis, tmp_path: Path, number: signal.Signals
) -> None:
    settings = {"REDIS_URL": redis_url, "CHECKPOINT_DB": str(tmp_path / "db"), "LOG_LEVEL": "ERROR"}
    async with run_process("worker", **settings) as worker:
        await wait_for_worker(redis)
        await hammer(worker, number)
    assert worker.returncode == 0


async def test_an_orderly_stop_ends_the_running_turn_and_exits_cleanly(
    redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    async with FakeLlama([Reply(content="slow", gate=gate)]) as llama, run_api(redis_url) as api:
        worker = run_process("worker", **worker_settings(redis_url, llama, tmp_path))
        async with worker as process:
            turn = await begin_turn(api, llama)
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        seen = await api.follow(turn)
        record = await api.turn(turn)
    assert [type_of(chunk) for chunk in seen] == ["queued", "error"]
    assert record["error"]["code"] == "worker_lost"
    assert await read_heartbeat(redis) is None


async def test_a_killed_worker_loses_no_turn_and_leaves_no_trace_of_its_own(
    redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    script = [Reply(content="never", gate=gate), Reply(content="second"), Reply(content="third")]
    async with FakeLlama(script) as llama, run_api(redis_url) as api:
        settings = worker_settings(redis_url, llama, tmp_path)
        async with run_process("worker", **settings) as process:
            left = await begin_turn(api, llama, thread_id="left")
            waiting = [await api.post("Next.", thread_id=thread) for thread in ("left", "other")]
            process.kill()
            await process.wait()
        async with run_process("worker", **settings):
            ends = [await api.follow(turn) for turn in (left, *waiting)]
        states = [await api.turn(turn) for turn in (left, *waiting)]
    assert [type_of(end[-1]) for end in ends] == ["error", "done", "done"]
    assert states[0]["error"]["code"] == "worker_lost"
    assert states[0]["rolled_back_messages"] == 1
    assert [text_of(end) for end in ends[1:]] == ["second", "third"]
    assert states[1]["started_at"] < states[2]["started_at"]
    said = [message["content"] for message in llama.calls[1].body["messages"]]
    assert said[1:] == ["Next."], "nothing is left of the turn before it"


def worker_settings(redis_url: str, llama: FakeLlama, folder: Path) -> dict[str, str]:
    """The variables of a worker on that server, with its database in `folder`."""
    return {
        "REDIS_URL": redis_url,
        "LLAMA_BASE_URL": llama.base_url,
        "CHECKPOINT_DB": str(folder / "db"),
        "LOG_LEVEL": "WARNING",
    }


async def begin_turn(api: Service, llama: FakeLlama, **fields: str) -> str:
    """A turn that the model server has begun to read."""
    turn = await api.post("Begin.", **fields)
    await llama.wait_for(lambda: bool(llama.calls), within=60)
    return turn


async def wait_for_worker(redis: Redis) -> None:
    """Returns once a worker is alive."""
    async with asyncio.timeout(60):
        while await read_heartbeat(redis) is None:
            await asyncio.sleep(0.02)


STUBBORN = """
import asyncio, time
from langgraph.graph import MessagesState, StateGraph

async def swallow(state):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

def block(state):
    time.sleep(3600)

def graph_of(node, deps):
    graph = StateGraph(MessagesState)
    graph.add_node("answer", node)
    graph.set_entry_point("answer")
    return graph.compile(checkpointer=deps.checkpointer)

def build_swallow(deps):
    return graph_of(swallow, deps)

def build_block(deps):
    return graph_of(block, deps)
"""


@pytest.mark.parametrize("kind", ["swallow", "block"])
async def test_an_agent_that_will_not_stop_does_not_keep_its_worker(
    redis_url: str, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    agents = f"stubborn=stubborn:build_{kind}"
    async with FakeLlama() as llama, run_api(redis_url, AGENTS=agents) as api:
        settings = worker_settings(redis_url, llama, tmp_path)
        worker = run_process("worker", **settings, AGENTS=agents, PYTHONPATH=str(tmp_path))
        async with worker as process:
            turn = await api.post("Begin.", agent="stubborn")
            await api.wait_for_status(turn, "running")
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        assert (await api.turn(turn))["error"]["code"] == "worker_lost"
