"""The fake answers as llama-server does: the shapes below were recorded from build b11549."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fake_llama import FakeLlama, Reply

CHUNK = {"choices", "created", "id", "model", "system_fingerprint", "object"}
SPEEDS = {"per_token_ms", "per_second", "ms", "n"}
TIMINGS = {"cache_n"} | {f"{what}_{speed}" for what in ("prompt", "predicted") for speed in SPEEDS}
ROLE = {"role": "assistant", "content": None}
USAGE = {"stream_options": {"include_usage": True}}

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


async def test_a_stream_is_role_tokens_finish_usage_done() -> None:
    async with FakeLlama([Reply("one two", reasoning="hm")]) as llama:
        *answer, finish, usage = await read_chunks(llama, chat(**USAGE))
    assert all(set(chunk) == CHUNK for chunk in [*answer, finish])
    spoken = [{"reasoning_content": "hm"}, {"content": "one"}, {"content": " two"}]
    assert deltas(answer) == [ROLE, *spoken]
    assert finish["choices"] == [{"finish_reason": "stop", "index": 0, "delta": {}}]
    assert set(usage) == CHUNK | {"usage", "timings"}
    assert usage["choices"] == []
    assert set(usage["timings"]) == TIMINGS
    call = llama.calls[0]
    assert call.n_decoded == 5  # with the end of the reasoning and of the turn
    assert usage["usage"] == {
        "completion_tokens": 5,
        "prompt_tokens": call.n_prompt,
        "total_tokens": call.n_prompt + 5,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


async def test_without_usage_the_timings_are_in_the_finish_chunk() -> None:
    async with FakeLlama() as llama:
        *_, finish = await read_chunks(llama, chat())
    assert set(finish) == CHUNK | {"timings"}
    assert finish["choices"][0]["finish_reason"] == "stop"


async def test_progress_is_told_at_the_start_and_after_every_batch() -> None:
    async with FakeLlama([Reply(prompt_tokens=25, cached=5)], n_batch=8) as llama:
        chunks = await read_chunks(llama, chat(return_progress=True))
    progress = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    assert [each["processed"] for each in progress] == [5, 13, 21, 25]
    assert {(each["total"], each["cache"]) for each in progress} == {(25, 5)}
    assert deltas(chunks[: len(progress)]) == [ROLE] * len(progress)


async def test_the_fragments_of_a_tool_call_join_to_its_arguments() -> None:
    reply = Reply(tool_calls=[("ls", {"path": "/"}), ("write_file", '{"broken')])
    async with FakeLlama([reply]) as llama:
        chunks = await read_chunks(llama, chat())
    parts = [part for delta in deltas(chunks) for part in delta.get("tool_calls", ())]
    heads = [part for part in parts if "id" in part]
    assert [head.keys() for head in heads] == [{"index", "id", "type", "function"}] * 2
    assert [head["function"]["name"] for head in heads] == ["ls", "write_file"]
    assert [len(head["id"]) for head in heads] == [32, 32]
    texts = [
        "".join(part["function"]["arguments"] for part in parts if part["index"] == index)
        for index in (0, 1)
    ]
    assert texts == ['{"path": "/"}', '{"broken']
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_an_answer_without_stream_is_one_body() -> None:
    reply = Reply("hello", reasoning="hm", tool_calls=[("ls", {"path": "/"})])
    async with FakeLlama([reply]) as llama:
        body = (await post(llama, chat())).json()
    assert set(body) == CHUNK | {"usage", "timings"}
    message = body["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("hello", "hm")
    assert message["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"path": "/"}'}


async def test_an_answer_out_of_tokens_ends_with_length() -> None:
    async with FakeLlama([Reply("a b c d"), Reply("a b c d", prompt_tokens=30)], n_ctx=32) as llama:
        limited = await read_chunks(llama, chat(max_completion_tokens=3))
        full = await read_chunks(llama, chat())
    assert [delta.get("content") for delta in deltas(limited)] == [None, "a", " b", " c", None]
    assert limited[-1]["choices"][0]["finish_reason"] == "length"
    assert full[-1]["choices"][0]["finish_reason"] == "length"
    assert llama.calls[1].n_prompt + llama.calls[1].n_decoded == 32


async def test_the_second_request_gets_no_head_before_the_first_ends() -> None:
    gate = asyncio.Event()
    script = [Reply("first", gate=gate), Reply("second")]
    async with FakeLlama(script) as llama, streaming(llama, chat()) as first:
        second = asyncio.create_task(read_chunks(llama, chat()))
        await llama.wait_for(lambda: len(llama.calls) == 2)
        metrics = (await get(llama, "/metrics")).text
        assert "llamacpp:requests_processing 1\n" in metrics
        assert "llamacpp:requests_deferred 1\n" in metrics
        assert [call.status for call in llama.calls] == [200, None]
        gate.set()
        assert first.status_code == 200
        assert {"content": "second"} in deltas(await second)
        ended, started = llama.calls[0].ended_at, llama.calls[1].started_at
        assert ended is not None
        assert started is not None
        assert ended <= started
    assert llama.max_at_once == 2


async def test_requests_one_after_the_other_are_never_at_once() -> None:
    async with FakeLlama() as llama:
        for _ in range(3):
            await read_chunks(llama, chat())
    assert [call.state for call in llama.calls] == ["done"] * 3
    assert llama.max_at_once == 1


@pytest.mark.parametrize(
    ("reply", "state"),
    [
        (Reply(gate=asyncio.Event()), "prefill"),
        (Reply("a b c", hang_after=2), "decode"),
    ],
)
async def test_a_client_that_leaves_frees_the_slot(reply: Reply, state: str) -> None:
    async with FakeLlama([reply, Reply("next")]) as llama:
        async with streaming(llama, chat()):
            await llama.wait_for(lambda: llama.calls[0].state == state)
        assert {"content": "next"} in deltas(await read_chunks(llama, chat()))
        assert [call.state for call in llama.calls] == ["cancelled", "done"]
        assert llama.max_at_once == 1


async def test_a_client_that_leaves_the_queue_is_never_run() -> None:
    gate = asyncio.Event()
    async with FakeLlama([Reply(gate=gate), Reply("next")]) as llama, streaming(llama, chat()):
        queued = asyncio.create_task(post(llama, chat()))
        await llama.wait_for(lambda: len(llama.calls) == 2)
        queued.cancel()
        await llama.wait_for(lambda: llama.calls[1].state == "cancelled")
        gate.set()
        assert {"content": "next"} in deltas(await read_chunks(llama, chat()))
        assert llama.calls[1].started_at is None


async def test_a_prompt_that_quotes_the_last_answer_finds_it_in_the_cache() -> None:
    question = {"role": "user", "content": "What is in the root?"}
    script = [Reply(tool_calls=[("ls", {"path": "/"})]), Reply("other"), Reply("ok")]
    async with FakeLlama(script) as llama:
        await read_chunks(llama, chat(question))
        await read_chunks(llama, chat({"role": "user", "content": "Something else"}))
        quoted = {"role": "assistant", "tool_calls": [tool_call("1", '{"path": "/"}')]}
        result = {"role": "tool", "tool_call_id": "1", "content": "bin"}
        await read_chunks(llama, chat(question, quoted, result))
    first, _, third = llama.calls
    assert third.n_cached >= first.n_prompt + first.n_decoded
    assert third.n_cached + third.n_processed == third.n_prompt


async def test_the_same_prompt_leaves_one_token_to_prefill_unless_told_not_to_cache() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "Say hello in one sentence."}]}
    async with FakeLlama(cache_ram=False) as llama:
        for fields in ({}, {}, {"cache_prompt": False}):
            await post(llama, chat(parts, **fields))
    whole = llama.calls[0].n_prompt
    assert [call.n_processed for call in llama.calls] == [whole, 1, whole]


async def test_a_prompt_beyond_the_context_is_refused_before_any_stream() -> None:
    async with FakeLlama([Reply(prompt_tokens=300)], n_ctx=256) as llama:
        response = await post(llama, chat(stream=True))
    assert response.status_code == 400
    assert response.headers["connection"] == "close"
    assert response.json() == {
        "error": {
            "code": 400,
            "message": "request (300 tokens) exceeds the available context size (256 tokens),"
            " try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 300,
            "n_ctx": 256,
        }
    }
    assert llama.calls[0].state == "error"


USER: Body = {"role": "user", "content": "hi"}
ASKED: Body = {"role": "assistant", "content": None, "tool_calls": [tool_call("1")]}
TOLD: Body = {"role": "tool", "tool_call_id": "1", "content": "bin"}
BROKEN: Body = {"role": "assistant", "content": None, "tool_calls": [tool_call("1", "{not json")]}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (chat(USER, ASKED), 400, "tool call without its tool message: 1"),
        (chat(USER, ASKED, USER, TOLD), 400, "tool call without its tool message: 1"),
        (chat(USER, TOLD), 400, "tool message without its tool call: 1"),
        (chat(USER, ASKED, TOLD, TOLD), 400, "tool message without its tool call: 1"),
        (chat(USER, BROKEN, TOLD), 500, "Failed to parse tool call arguments as JSON"),
        (chat(tool_choice="ls"), 400, "Invalid tool_choice: ls"),
        (chat(tools=[{"type": "function", "function": {}}]), 500, "Failed to parse tools"),
        ({"stream": True}, 400, "'messages' is required"),
    ],
)
async def test_a_faulty_request_is_refused(body: Body, code: int, message: str) -> None:
    async with FakeLlama([Reply("kept")]) as llama:
        response = await post(llama, body)
        assert response.status_code == llama.calls[0].status == code
        assert response.json()["error"]["message"].startswith(message)
        kind = "server_error" if code == 500 else "invalid_request_error"
        assert response.json()["error"]["type"] == kind
        whole = await post(llama, chat(USER, ASKED, TOLD))
        assert whole.json()["choices"][0]["message"]["content"] == "kept"


async def test_a_body_that_is_not_json_is_refused() -> None:
    async with FakeLlama() as llama, client_of(llama) as client:
        response = await client.post("/v1/chat/completions", content=b'{"messages": [')
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (Reply("a b c", die_after=1), httpx.ReadError),
        (Reply("a b c", eof_after=1), httpx.RemoteProtocolError),
    ],
)
async def test_a_server_that_dies_breaks_the_stream(reply: Reply, fault: type[Exception]) -> None:
    async with FakeLlama([reply]) as llama:
        async with streaming(llama, chat()) as response:
            with pytest.raises(fault):
                await response.aread()
        assert (llama.calls[0].state, llama.calls[0].n_decoded) == ("died", 1)


async def test_scripted_errors_come_before_or_inside_the_stream() -> None:
    error = {"message": "no memory", "type": "server_error"}
    broken = Reply("a b", stream_error=(1, {"code": 500, **error}))
    async with FakeLlama([Reply(error=(503, error)), broken, broken]) as llama:
        response = await post(llama, chat(stream=True))
        assert (response.status_code, response.json()) == (503, {"error": {"code": 503, **error}})
        *_, last = await read_lines(llama, chat())
        assert json.loads(last.removeprefix("data: ")) == {"error": {"code": 500, **error}}
        response = await post(llama, chat())
        assert (response.status_code, response.json()) == (500, {"error": {"code": 500, **error}})


async def test_a_silent_prefill_is_pinged() -> None:
    gate = asyncio.Event()
    async with (
        FakeLlama([Reply(gate=gate)], sse_ping_interval=0.01) as llama,
        streaming(llama, chat()) as response,
    ):
        lines = response.aiter_lines()
        assert await anext(lines) == ":"
        gate.set()
        assert [line async for line in lines if line][-1] == "data: [DONE]"


async def test_a_loading_server_is_unavailable_on_every_path() -> None:
    async with FakeLlama(loading=True) as llama:
        error = {"message": "Loading model", "type": "unavailable_error", "code": 503}
        for response in [await get(llama, "/health"), await post(llama, chat())]:
            assert (response.status_code, response.json()) == (503, {"error": error})
        llama.loading = False
        assert (await get(llama, "/v1/health")).json() == {"status": "ok"}


async def test_the_slot_tells_what_it_does_and_the_metrics_what_it_did() -> None:
    async with FakeLlama([Reply("a b c", prompt_tokens=20, hang_after=2)]) as llama:
        async with streaming(llama, chat(max_tokens=9)):
            await llama.wait_for(lambda: llama.calls[0].n_decoded == 2)
            (busy,) = (await get(llama, "/slots")).json()
        await llama.wait_for(lambda: llama.calls[0].state == "cancelled")
        (idle,) = (await get(llama, "/slots")).json()
        metrics = (await get(llama, "/metrics")).text
    assert (busy["is_processing"], busy["n_prompt_tokens"]) == (True, 22)
    assert busy["next_token"][0] | {"n_decoded": 2, "n_remain": 7} == busy["next_token"][0]
    assert (idle["is_processing"], idle["n_prompt_tokens"]) == (False, 22)
    assert "llamacpp:prompt_tokens_total 20\n" in metrics
    assert "llamacpp:tokens_predicted_total 2\n" in metrics


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


async def test_a_fault_of_the_script_is_raised_at_the_end() -> None:
    def choose(_: Body) -> Reply:
        raise LookupError("no such reply")

    async def use() -> None:
        async with FakeLlama(choose) as llama:
            with pytest.raises(httpx.RemoteProtocolError):
                await post(llama, chat())

    with pytest.raises(LookupError, match="no such reply"):
        await use()


async def test_waiting_in_vain_raises_with_the_calls_seen() -> None:
    async with FakeLlama() as llama:
        await post(llama, chat())
        with pytest.raises(TimeoutError, match="'done'"):
            await llama.wait_for(lambda: len(llama.calls) == 2, within=0.01)


async def test_the_server_closes_under_open_connections() -> None:
    async with FakeLlama([Reply("a b", hang_after=1)]) as llama:
        idle, streamed = client_of(llama), client_of(llama)
        await idle.get("/health")
        request = streamed.build_request("POST", "/v1/chat/completions", json=chat(stream=True))
        response = await streamed.send(request, stream=True)
        queued = asyncio.create_task(post(llama, chat()))
        await llama.wait_for(lambda: len(llama.calls) == 2 and llama.calls[0].n_decoded == 1)
    with pytest.raises(httpx.HTTPError):
        await response.aread()
    with pytest.raises(httpx.HTTPError):
        await queued
    await idle.aclose()
    await streamed.aclose()


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
