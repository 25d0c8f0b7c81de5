"""A client of the fake that reads chats whole or as they come."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.fake_llama import FakeLlama

Body = dict[str, Any]


def chat(*messages: Body, **fields: Any) -> Body:
    return {"messages": list(messages) or [{"role": "user", "content": "hi"}], **fields}


def tool_call(call_id: str, arguments: str = "{}") -> Body:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "ls", "arguments": arguments},
    }


def client_of(llama: FakeLlama) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=llama.url, timeout=10)


@asynccontextmanager
async def streaming(llama: FakeLlama, body: Body) -> AsyncGenerator[httpx.Response]:
    """A chat call on a connection of its own, which closes with the block."""
    async with (
        client_of(llama) as client,
        client.stream("POST", "/v1/chat/completions", json=body | {"stream": True}) as response,
    ):
        yield response


async def read_lines(llama: FakeLlama, body: Body) -> list[str]:
    async with streaming(llama, body) as response:
        assert response.status_code == 200
        return [line async for line in response.aiter_lines() if line]


async def read_chunks(llama: FakeLlama, body: Body) -> list[Body]:
    *events, done = await read_lines(llama, body)
    assert done == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events]


async def post(llama: FakeLlama, body: Body) -> httpx.Response:
    async with client_of(llama) as client:
        return await client.post("/v1/chat/completions", json=body)


async def get(llama: FakeLlama, path: str) -> httpx.Response:
    async with client_of(llama) as client:
        return await client.get(path)


def deltas(chunks: list[Body]) -> list[Body]:
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
