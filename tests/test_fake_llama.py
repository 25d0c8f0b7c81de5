"""The fake as a server: its names, its script, and its program."""

import asyncio
import signal
import sys
from pathlib import Path

import httpx

from tests.fake_llama import FakeLlama, Reply
from tests.llama_client import chat, get, post


async def test_models_and_properties_name_the_context() -> None:
    async with FakeLlama(n_ctx=512) as llama:
        models, alias = [await get(llama, path) for path in ("/v1/models", "/models")]
        props = (await get(llama, "/props")).json()
        missing = await get(llama, "/nope")
    assert models.json()["data"][0]["meta"]["n_ctx"] == 512
    assert models.json()["data"][0]["id"] == alias.json()["data"][0]["id"] == props["model_alias"]
    assert props["default_generation_settings"]["n_ctx"] == 512
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")


async def test_the_script_may_be_a_function_of_the_request() -> None:
    async with FakeLlama(lambda body: Reply(body["messages"][-1]["content"].upper())) as llama:
        response = await post(llama, chat({"role": "user", "content": "hello"}))
    assert response.json()["choices"][0]["message"]["content"] == "HELLO"


async def test_the_module_serves_until_it_is_told_to_stop() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fake_llama"),
        cwd=Path(__file__).parents[1],
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    async with httpx.AsyncClient(base_url=url) as client:
        assert (await client.get("/health")).json() == {"status": "ok"}
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
