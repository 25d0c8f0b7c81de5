"""`turnkeeper up`: one command, a working service with a model in it."""

import asyncio
import json
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import httpx

from tests.fake_llama import FakeLlama
from tests.service import run_worker
from tests.until import until
from tests.up_process import EMBEDDED, WITHIN_S, UpProcess, run_up

WAITING = "up     | waiting for llama (LLAMA_BASE_URL)"
ASK = (sys.executable, "-m", "api.cli", "ask")


async def run(*command: str, url: str = "", **environment: str) -> tuple[int | None, str]:
    """Exit code and output of a client of the service at `url`."""
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, "TURNKEEPER_URL": url, **environment}, stdout=PIPE
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_a_person_can_ask_and_is_remembered_the_next_day(tmp_path: Path) -> None:
    data = tmp_path / "a folder, ünd (long) %20 " / "data"
    async with run_up(data) as up:
        url = await up.ready()
        assert up.parts().keys() == EMBEDDED
        code, answer = await run(*ASK, "Say hello in five words.", "--thread", "tour", url=url)
        assert code == 0
        assert answer.strip()
        async with httpx.AsyncClient(base_url=url) as api:
            status = (await api.get("/status")).json()
        assert status["n_ctx"] == 8192
        assert status["slot"]["busy"] is False
        await up.stop()
    async with run_up(data, API_TOKEN="secret-word") as up:
        url = await up.ready()
        asking = [*ASK, "Say it again.", "--thread", "tour", "--json"]
        code, chunks = await run(*asking, url=url, API_TOKEN="secret-word")
        await the_line_that_it_tells_can_be_pasted(up)
        await up.stop()
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
            await until(lambda: up.lines[-1:] == [WAITING], WITHIN_S)
            llama.loading = False
            url = await up.ready()
            assert up.parts().keys() == {"worker", "api"}
            assert await run(*ASK, "Hello.", url=url) == (0, "ok\n")
            assert len(llama.calls) == 1
            await up.stop()


async def test_an_empty_setting_counts_as_unset(tmp_path: Path) -> None:
    async with run_up(tmp_path, REDIS_URL="", LLAMA_BASE_URL="") as up:
        await asyncio.gather(*(up.part(name) for name in EMBEDDED))


async def test_another_worker_s_sign_of_life_does_not_make_it_ready(
    tmp_path: Path, redis_url: str
) -> None:
    async with FakeLlama() as llama:
        servers = {"REDIS_URL": redis_url, "LLAMA_BASE_URL": llama.base_url}
        async with (
            run_worker(redis_url, llama.base_url, tmp_path),
            run_up(tmp_path / "other", **servers) as up,
        ):
            code, said = await up.end()
    assert code == 1
    assert said.startswith("turnkeeper: worker ended with exit code 1: The queue belongs to ")
    assert not any("ready in" in line for line in up.lines)
