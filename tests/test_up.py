"""`turnkeeper up`: one command, a working service with a model in it."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fake_llama import FakeLlama
from tests.until import until
from tests.up_process import WITHIN_S, UpProcess, run_up

RESTLESS = """
import subprocess
from langgraph.graph import MessagesState, StateGraph

subprocess.Popen(["sleep", "1000"])
print("I have started a process", flush=True)

def build(deps):
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: state)
    graph.set_entry_point("answer")
    return graph.compile(checkpointer=deps.checkpointer)
"""
ASK = (sys.executable, "-m", "api.cli", "ask")
EMBEDDED = {"valkey", "llama", "worker", "api"}


async def run(*command: str, url: str = "", **environment: str) -> tuple[int | None, str]:
    """Exit code and output of a client of the service at `url`."""
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, "TURNKEEPER_URL": url, **environment}, stdout=PIPE
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def ready(up: UpProcess) -> str:
    """The address that it tells once a turn would run."""
    address = re.search(r"http://\S+:\d+", await up.hear("ready in"))
    assert address
    return address[0]


async def stop(up: UpProcess, number: int = signal.SIGTERM) -> None:
    """Tells it to stop, and sees that it does so in order."""
    up.process.send_signal(number)
    assert await up.end() == (0, "")
    assert up.left() == []


async def test_a_person_can_ask_and_is_remembered_the_next_day(tmp_path: Path) -> None:
    data = tmp_path / "a folder, ünd (long) %20 " / "data"
    async with run_up(data) as up:
        url = await ready(up)
        assert up.parts().keys() == EMBEDDED
        code, answer = await run(*ASK, "Say hello in five words.", "--thread", "tour", url=url)
        assert code == 0
        assert answer.strip()
        async with httpx.AsyncClient(base_url=url) as api:
            status = (await api.get("/status")).json()
        assert status["n_ctx"] == 8192
        assert status["slot"]["busy"] is False
        await stop(up)
    async with run_up(data, API_TOKEN="secret-word") as up:
        url = await ready(up)
        asking = [*ASK, "Say it again.", "--thread", "tour", "--json"]
        code, chunks = await run(*asking, url=url, API_TOKEN="secret-word")
        await the_line_that_it_tells_can_be_pasted(up)
        await stop(up)
    assert code == 0
    done: dict[str, Any] = json.loads(chunks.splitlines()[-1])
    # A prompt with the first question and answer in it; alone, this one has 18 tokens.
    assert done["metadata"]["usage"]["prompt_tokens_total"] > 30


async def the_line_that_it_tells_can_be_pasted(up: UpProcess) -> None:
    """Into a shell with the token in its environment; the token itself is not told."""
    line = await up.hear("curl")
    if shutil.which("curl"):
        code, output = await run("sh", "-c", line, API_TOKEN="secret-word")
        assert code == 0
        assert "event: done" in output
    assert "secret-word" not in up.output


async def test_servers_of_ones_own_are_used_and_waited_for(tmp_path: Path, redis_url: str) -> None:
    async with FakeLlama() as llama:
        llama.loading = True
        async with run_up(tmp_path, REDIS_URL=redis_url, LLAMA_BASE_URL=llama.base_url) as up:
            await until(lambda: up.lines[-1:] == ["up     | waiting for llama"], 60)
            llama.loading = False
            url = await ready(up)
            assert up.parts().keys() == {"worker", "api"}
            assert await run(*ASK, "Hello.", url=url) == (0, "ok\n")
            assert len(llama.calls) == 1
            await stop(up)


async def test_an_empty_setting_counts_as_unset(tmp_path: Path) -> None:
    async with run_up(tmp_path, REDIS_URL="", LLAMA_BASE_URL="") as up:
        await asyncio.gather(*(up.part(name) for name in EMBEDDED))


@pytest.mark.parametrize("part", sorted(EMBEDDED))
async def test_a_part_that_dies_takes_the_rest_down(tmp_path: Path, part: str) -> None:
    async with run_up(tmp_path) as up:
        os.kill(await up.part(part), signal.SIGKILL)
        assert await up.end() == (1, f"turnkeeper: {part} was ended by SIGKILL\n")
        assert up.left() == []


async def test_what_an_agent_has_started_goes_with_its_worker(tmp_path: Path) -> None:
    (tmp_path / "restless.py").write_text(RESTLESS)
    agents = {"AGENTS": "restless=restless:build", "PYTHONPATH": str(tmp_path)}
    async with run_up(tmp_path / "data", **agents) as up:
        await up.hear("I have started a process")
        os.kill(await up.part("worker"), signal.SIGKILL)
        assert await up.end() == (1, "turnkeeper: worker was ended by SIGKILL\n")
        assert up.left() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_it_can_be_stopped_while_it_starts(tmp_path: Path, number: int) -> None:
    async with run_up(tmp_path) as up:
        await up.hear("starting")
        await stop(up, number)


async def test_ctrl_c_twice_and_more_is_as_orderly_as_once(tmp_path: Path) -> None:
    async with run_up(tmp_path) as up:
        await ready(up)
        while up.process.returncode is None:
            up.interrupt()
            await asyncio.sleep(0.01)
        assert await up.end() == (0, "")
        assert up.left() == []
    assert "ended by force" not in up.output


async def test_nothing_is_left_when_it_is_killed_itself(tmp_path: Path) -> None:
    async with run_up(tmp_path) as up:
        await up.part("worker")
        orphans = set(up.left())
        up.process.kill()
        async with run_up(tmp_path) as next_one:
            await next_one.hear("starting")
            await until(lambda: not orphans & set(up.left()))
            await stop(next_one)


async def test_ctrl_c_while_the_rest_is_stopped_leaves_nothing_out(tmp_path: Path) -> None:
    async with run_up(tmp_path) as up:
        os.kill(await up.part("worker"), signal.SIGSTOP)
        os.kill(await up.part("api"), signal.SIGKILL)
        await up.hear("stopping the rest")
        up.interrupt()
        assert await up.end() == (1, "turnkeeper: api was ended by SIGKILL\n")
        assert up.left() == []
    assert "worker | has not stopped within 15 s: ended by force" in up.lines


async def test_it_stops_when_nobody_listens_any_more(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    up = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "api.cli", "up", "--data", str(tmp_path), "--port", "0"),
        stdout=writer,
        stderr=PIPE,
    )
    os.close(writer)
    os.close(reader)
    try:
        async with asyncio.timeout(WITHIN_S):
            _, errors = await up.communicate()
    finally:
        if up.returncode is None:
            up.kill()
    assert (up.returncode, errors) == (0, b"")
