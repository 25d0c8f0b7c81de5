"""The service on the real llama.cpp server with a real, small model."""

import asyncio
from pathlib import Path

import pytest

from api.local.llama import N_CTX
from shared.chunks import Cancelled, Done, Usage, type_of
from tests.llama_cpp import run_llama_cpp
from tests.service import Service, run_service, text_of
from tests.until import until
from tests.wiretap import Wiretap, tap

WITHIN_S = 120
"""A model's threads wait for each other: beside other work each batch may take many seconds."""

LONG = "one two three four five six seven eight nine ten " * 600


async def test_a_real_model_answers_and_remembers(redis_url: str, tmp_path: Path) -> None:
    async with (
        run_llama_cpp() as base_url,
        tap(base_url) as (tapped_url, wire),
        run_service(redis_url, tapped_url, tmp_path, LLAMA_MAX_TOKENS=64) as service,
    ):
        first = await service.ask("Say hello in five words.", thread_id="real")
        assert type_of(first[0]) == "queued"
        assert text_of(first) == wire.answered_text() != ""
        usage = next(chunk.metadata for chunk in first if isinstance(chunk, Usage))
        assert usage.prefill_tps
        assert usage.decode_tps

        second = await service.ask("Say it again.", thread_id="real")
        assert text_of(first) + text_of(second) == wire.answered_text()
        status = (await service.client.get("/status")).json()

    assert isinstance(first[-1], Done)
    assert isinstance(second[-1], Done)
    context, longer_context = first[-1].metadata.context_tokens, second[-1].metadata.context_tokens
    assert context
    assert longer_context
    assert longer_context > context, "the second prompt holds the first turn"
    assert second[-1].metadata.usage.cache_read_total, "and the server had it cached"
    assert (status["llama"], status["n_ctx"]) == ("ok", N_CTX)


@pytest.mark.timeout(3 * WITHIN_S)
async def test_a_real_prefill_and_a_real_answer_are_cancelled(
    redis_url: str, tmp_path: Path
) -> None:
    async with (
        run_llama_cpp() as base_url,
        tap(base_url) as (tapped_url, wire),
        run_service(redis_url, tapped_url, tmp_path, LLAMA_MAX_TOKENS=500) as service,
    ):
        prefill = await service.post(LONG, thread_id="real")
        # The slot has begun.
        await until(lambda: b"text/event-stream" in wire.answered, WITHIN_S)
        await cancel(service, prefill)
        assert wire.answered_text() == "", "it was still reading the prompt"

        decode = await service.post("Tell me a long story.", thread_id="real")
        await until(wire.answered_text, WITHIN_S)
        await cancel(service, decode)
        heard = wire.answered_text()

        await until_idle(service)
        done = await service.ask("Say hello in five words.", thread_id="real")

    assert isinstance(done[-1], Done)
    assert text_of(done) == wire.answered_text()[len(heard) :] != ""
    assert LONG.strip() not in last_request(wire)
    assert "Say hello" in last_request(wire)


async def cancel(service: Service, turn_id: str) -> None:
    """Cancels the turn and follows it to its end."""
    answer = await service.client.post(f"/turns/{turn_id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelling")
    end = (await service.follow(turn_id))[-1]
    assert isinstance(end, Cancelled)
    assert end.metadata.rolled_back_messages == 1


async def until_idle(service: Service) -> None:
    """Waits until the model server says that its slot is free.

    The worker asks it no more often than it may be asked without keeping it from noticing that a
    client has left.
    """
    while (await service.client.get("/status")).json()["slot"]["busy"]:
        await asyncio.sleep(0.1)


def last_request(wire: Wiretap) -> str:
    """The last prompt that was sent."""
    return bytes(wire.sent).rpartition(b"POST ")[2].decode()
