"""The model client, as a llama-server sees it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import reduce
from operator import add
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from pydantic import SecretStr

from tests.fake_llama import FakeLlama, Reply
from worker.failures import explain
from worker.llm import ChatLlama, open_model
from worker.settings import WorkerSettings


@asynccontextmanager
async def client_of(llama: FakeLlama, **settings: Any) -> AsyncGenerator[ChatLlama]:
    async with open_model(WorkerSettings(LLAMA_BASE_URL=llama.base_url, **settings)) as model:
        yield model


async def ask(llama: FakeLlama, **settings: Any) -> list[AIMessageChunk]:
    async with client_of(llama, **settings) as model:
        return [piece async for piece in model.astream("hi")]  # pyright: ignore


async def test_a_request_asks_for_all_that_the_server_can_tell() -> None:
    async with FakeLlama() as llama:
        await ask(llama)
    assert llama.calls[0].body == {
        "model": "default",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "timings_per_token": True,
        "max_completion_tokens": 8192,
    }


async def test_no_proxy_stands_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with FakeLlama() as llama:
        assert await ask(llama)


async def test_settings_shape_the_request() -> None:
    extra = {"temperature": 0.5, "chat_template_kwargs": {"x": 1}, "timings_per_token": False}
    async with FakeLlama() as llama:
        await ask(
            llama,
            LLAMA_MODEL="mine",
            LLAMA_MAX_TOKENS=7,
            LLAMA_EXTRA_BODY=extra,
            LLAMA_API_KEY=SecretStr("key"),
        )
    body = llama.calls[0].body
    assert {name: body[name] for name in extra} == extra
    assert (body["model"], body["max_completion_tokens"]) == ("mine", 7)
    assert body["stream_options"] == {"include_usage": True}


async def test_the_server_s_timings_are_kept_once_and_as_they_are() -> None:
    async with FakeLlama([Reply("one two three four", prompt_tokens=30, cached=10)]) as llama:
        pieces = await ask(llama)
    [timings] = [t for piece in pieces if (t := piece.response_metadata.get("timings"))]
    call = llama.calls[0]
    assert timings["prompt_n"] == 20
    assert timings["predicted_n"] == call.n_decoded
    whole = reduce(add, pieces)
    assert whole.response_metadata["timings"] == timings
    assert whole.text == "one two three four"
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["input_tokens"] == 30
    assert whole.usage_metadata["output_tokens"] == call.n_decoded
    assert whole.usage_metadata.get("input_token_details") == {"cache_read": 10}


async def test_a_whole_answer_has_the_timings_too() -> None:
    async with FakeLlama([Reply("one two")]) as llama, client_of(llama) as model:
        answer = await model.ainvoke("hi")
    assert answer.text == "one two"
    assert answer.response_metadata["timings"]["predicted_n"] == llama.calls[0].n_decoded


async def test_a_message_of_tool_calls_has_empty_text_and_not_null() -> None:
    history = [
        HumanMessage("hi"),
        AIMessage("", tool_calls=[{"id": "c1", "name": "ls", "args": {"path": "/"}}]),
        ToolMessage("a", tool_call_id="c1"),
    ]
    async with FakeLlama() as llama, client_of(llama) as model:
        await model.ainvoke(history)
    asked, called, answered = llama.calls[0].body["messages"]
    assert asked == {"role": "user", "content": "hi"}
    assert called["content"] == ""
    assert called["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"path": "/"}'}
    assert answered == {"role": "tool", "content": "a", "tool_call_id": "c1"}


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_refusal_is_not_tried_again(status: int) -> None:
    refusal = (status, {"message": "Out of luck", "type": "server_error"})
    async with FakeLlama([Reply(error=refusal)]) as llama:
        with pytest.raises(openai.APIStatusError) as caught:
            await ask(llama)
    assert len(llama.calls) == 1
    assert explain(caught.value).code == "model_error"
    assert "Out of luck" in explain(caught.value).message


async def test_a_server_that_is_not_there_is_not_available() -> None:
    async with FakeLlama() as llama:
        pass
    with pytest.raises(openai.APIConnectionError) as caught:
        await ask(llama)
    assert explain(caught.value).code == "model_unavailable"


@pytest.mark.parametrize("fault", ["die_after", "eof_after"])
async def test_a_server_that_dies_while_it_speaks_is_not_available(fault: str) -> None:
    reply = Reply(**{"content": "one two three", fault: 2})  # pyright: ignore
    async with FakeLlama([reply]) as llama:
        with pytest.raises(openai.OpenAIError) as caught:
            await ask(llama)
    assert explain(caught.value).code == "model_unavailable"
    assert len(llama.calls) == 1


async def test_an_error_within_the_stream_is_the_model_s() -> None:
    error = {"message": "Context is full", "type": "server_error", "code": 500}
    async with FakeLlama([Reply("one two three", stream_error=(2, error))]) as llama:
        with pytest.raises(openai.APIError) as caught:
            await ask(llama)
    assert explain(caught.value).code == "model_error"
    assert "Context is full" in explain(caught.value).message


async def test_a_client_that_stops_reading_frees_the_slot() -> None:
    async with FakeLlama([Reply("word " * 500, decode_tps=500)]) as llama:
        async with client_of(llama) as model:
            answer = model.astream("hi")  # pyright: ignore
            await anext(answer)
            await answer.aclose()  # pyright: ignore
        await llama.wait_for(lambda: llama.calls[0].state == "cancelled")
