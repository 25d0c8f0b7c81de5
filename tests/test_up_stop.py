"""How `turnkeeper up` ends: told to, or because a part has died. Nothing is ever left running."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.until import until
from tests.up_process import EMBEDDED, WITHIN_S, run_up

GRAPH = """
from langgraph.graph import MessagesState, StateGraph

def build(deps):
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: state)
    graph.set_entry_point("answer")
    return graph.compile(checkpointer=deps.checkpointer)
"""
RESTLESS = """
import subprocess
subprocess.Popen(["sleep", "1000"])
print("I have started a process")
"""
TALKATIVE = """
import pathlib, threading

def talk():
    for number in range(100_000):
        print("More than a pipe, a queue and another pipe can hold. " * 20)
        if number == 15_000:
            (pathlib.Path(__file__).parent / "said").touch()

threading.Thread(target=talk, daemon=True).start()
"""


@pytest.mark.parametrize("part", sorted(EMBEDDED))
async def test_a_part_that_dies_takes_the_rest_down(tmp_path: Path, part: str) -> None:
    async with run_up(tmp_path) as up:
        os.kill(await up.part(part), signal.SIGKILL)
        assert await up.end() == (1, f"turnkeeper: {part} was ended by SIGKILL\n")
        assert up.left() == []


async def test_what_an_agent_has_started_goes_with_its_worker(tmp_path: Path) -> None:
    (tmp_path / "restless.py").write_text(RESTLESS + GRAPH)
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
        await up.stop(number)


async def test_ctrl_c_twice_and_more_is_as_orderly_as_once(tmp_path: Path) -> None:
    async with run_up(tmp_path) as up:
        await up.ready()
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
            await next_one.stop()


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


async def test_it_hears_a_signal_though_nobody_reads_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "talkative.py").write_text(TALKATIVE + GRAPH)
    reader, writer = os.pipe()
    up = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "api.cli", "up", "--data", str(tmp_path / "data"), "--port", "0"),
        env={**os.environ, "AGENTS": "t=talkative:build", "PYTHONPATH": str(tmp_path)},
        stdout=writer,
        stderr=PIPE,
    )
    os.close(writer)
    try:
        async with asyncio.timeout(WITHIN_S):
            await until(lambda: (tmp_path / "said").exists(), WITHIN_S)
            up.terminate()
            _, errors = await up.communicate()
    finally:
        os.close(reader)
        if up.returncode is None:
            up.kill()
    assert (up.returncode, errors) == (0, b"")


async def test_a_part_ended_by_a_signal_without_a_name(tmp_path: Path) -> None:
    async with run_up(tmp_path) as up:
        os.kill(await up.part("llama"), signal.SIGRTMIN + 6)
        code, said = await up.end()
    assert (code, said) == (1, f"turnkeeper: llama was ended by signal {signal.SIGRTMIN + 6}\n")
