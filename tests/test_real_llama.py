"""The service on the real llama.cpp server with a real, small model."""

from pathlib import Path

from api.local.llama import N_CTX
from shared.chunks import Done, Usage, type_of
from tests.llama_cpp import run_llama_cpp
from tests.service import run_service, text_of
from tests.wiretap import tap


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
