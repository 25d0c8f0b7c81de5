"""The fake streams an answer, or gives it whole, as llama-server does."""

import asyncio

from tests.fake_llama import FakeLlama, Reply
from tests.llama_client import chat, deltas, post, read_chunks, streaming

CHUNK = {"choices", "created", "id", "model", "system_fingerprint", "object"}
SPEEDS = {"per_token_ms", "per_second", "ms", "n"}
TIMINGS = {"cache_n"} | {f"{what}_{speed}" for what in ("prompt", "predicted") for speed in SPEEDS}
ROLE = {"role": "assistant", "content": None}
USAGE = {"stream_options": {"include_usage": True}}


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
