"""The fake fails as its script says."""

import asyncio
import json

import httpx
import pytest

from tests.fake_llama import FakeLlama, Reply
from tests.llama_client import Body, chat, client_of, get, post, read_lines, streaming


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


async def test_a_loading_server_is_unavailable_on_every_path() -> None:
    async with FakeLlama(loading=True) as llama:
        error = {"message": "Loading model", "type": "unavailable_error", "code": 503}
        for response in [await get(llama, "/health"), await post(llama, chat())]:
            assert (response.status_code, response.json()) == (503, {"error": error})
        llama.loading = False
        assert (await get(llama, "/v1/health")).json() == {"status": "ok"}


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
