"""The real llama.cpp server with SmolLM2-135M-Instruct, in a process of its own."""

import asyncio
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx

from api.listener import reserve_port
from api.local.llama import HOST, find_model, llama_part

WITHIN_S = 60


@asynccontextmanager
async def run_llama_cpp() -> AsyncGenerator[str]:
    """The server's base URL, `/v1` included, once its model is loaded."""
    with reserve_port(HOST) as port:
        command = llama_part(find_model(), port).command
        process = await asyncio.create_subprocess_exec(*command, stderr=DEVNULL)
        try:
            async with asyncio.timeout(WITHIN_S):
                while not await _is_loaded(f"http://{HOST}:{port}"):
                    assert process.returncode is None, "the llama.cpp server did not start"
                    await asyncio.sleep(0.05)
            yield f"http://{HOST}:{port}/v1"
        finally:
            process.kill()
            await process.wait()


async def _is_loaded(url: str) -> bool:
    async with httpx.AsyncClient(base_url=url) as client:
        try:
            return (await client.get("/health")).is_success
        except httpx.TransportError:
            return False
