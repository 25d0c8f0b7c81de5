"""The fake has one slot: who waits for it, who leaves it, and what stays in it."""

import asyncio

import pytest

from tests.fake_llama import FakeLlama, Reply
from tests.llama_client import chat, deltas, get, post, read_chunks, streaming, tool_call


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
    assert third.n_cached == first.n_in_slot
    assert third.n_cached + third.n_processed == third.n_prompt


async def test_the_same_prompt_leaves_one_token_to_prefill_unless_told_not_to_cache() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "Say hello in one sentence."}]}
    async with FakeLlama(cache_ram=False) as llama:
        for fields in ({}, {}, {"cache_prompt": False}):
            await post(llama, chat(parts, **fields))
    whole = llama.calls[0].n_prompt
    assert [call.n_processed for call in llama.calls] == [whole, 1, whole]


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
    assert "llamacpp:tokens_predicted_total 3\n" in metrics, "the running token ends first"
