"""The fake says what llama-server was recorded to say, byte for byte but for what `likeness` blurs.

The recordings and where they come from: `tests/llama_wire`. What is not replayed is named in the
fake's own list of what it does not model.
"""

import json
from dataclasses import replace

import pytest

from api.listener import reserve_port
from tests.fake_llama import FakeLlama, Reply
from tests.llama_wire.catalogue import (
    ALONE,
    LOADING,
    NOT_MODELLED,
    RECORDED,
    SESSION,
    TOGETHER,
)
from tests.llama_wire.client import PING, connect
from tests.llama_wire.likeness import likeness
from tests.llama_wire.recording import Answer, Body, Exchange, Request, exchanges_of, lines_of
from tests.llama_wire.script import interrupted, reply_for

N_BATCH = 2048
N_CTX = {"d_ctx_full_in_decode": 256}
SAID = {f"h_utf8_cut_{n}": "h_utf8_stream" for n in (3, 4, 5, 6)}
"""What was cut short is told whole by another recording, of the same request without the limit."""


@pytest.mark.parametrize("name", sorted(ALONE))
async def test_an_answer_is_as_recorded(name: str) -> None:
    (exchange,) = exchanges_of(name)
    (said,) = exchanges_of(SAID.get(name, name))
    reply = interrupted(reply_for(said), exchange.answer)
    n_ctx, interval = N_CTX.get(name, 8192), ping_interval(exchange)
    async with FakeLlama(
        [reply], n_ctx=n_ctx, n_batch=N_BATCH, sse_ping_interval=interval
    ) as llama:
        answer = await answer_of(llama, exchange.request, reply)
    assert likeness(answer) == likeness(exchange.answer)


async def test_what_is_told_of_a_session_is_as_recorded() -> None:
    """The cached tokens, the slot and the counters are the fake's own here."""
    session = [exchange for name in SESSION for exchange in exchanges_of(name)]
    chats = [exchange for exchange in session if exchange.request.method == "POST"]
    script = [replace(reply_for(chat), cached=None) for chat in chats]
    async with FakeLlama(script, n_batch=N_BATCH) as llama:
        for exchange in session:
            answer = await answer_of(llama, exchange.request)
            assert likeness(answer) == likeness(exchange.answer), exchange.request.path


async def test_a_server_that_comes_up_answers_as_recorded() -> None:
    refused, loading, ready = phases_of(LOADING)
    with reserve_port("127.0.0.1") as port:
        for _ in refused:
            with pytest.raises(ConnectionRefusedError):
                await connect(port).__aenter__()
        async with FakeLlama(port=port, loading=True) as llama:
            for line in loading:
                status, body = await status_of(llama, line)
                assert (status, json.loads(body)) == (line["status"], json.loads(line["body"]))
            llama.loading = False
            for line in ready:
                status, _ = await status_of(llama, line)
                assert status == line["status"]


def test_what_the_fake_does_not_model_is_a_recording_that_is_not_replayed() -> None:
    """Every other one is, alone or together with others."""
    assert NOT_MODELLED <= RECORDED
    assert TOGETHER <= RECORDED
    assert not NOT_MODELLED & TOGETHER


def ping_interval(exchange: Exchange) -> float:
    """The server's own: soon where one pinged, never where the request has to say it."""
    asked = "sse_ping_interval" in exchange.request.body
    return 0.01 if PING in exchange.answer.chunks and not asked else 30.0


async def answer_of(llama: FakeLlama, request: Request, reply: Reply | None = None) -> Answer:
    """The answer to the request; a ping is what a reply that waits is waiting for."""
    async with connect(llama.port) as client:
        if reply and (pinged := reply.gate or reply.release):
            client.on_ping = pinged.set
        await client.ask(request)
        return await client.answer()


def phases_of(name: str) -> tuple[list[Body], list[Body], list[Body]]:
    """The requests that met no server, a loading one, and one that was ready."""
    lines = lines_of(name)
    refused = [line for line in lines if "ConnectionRefusedError" in line["status"]]
    loading = [line for line in lines if line["status"] == "503"]
    ready = [line for line in lines if line["status"] == "200"]
    assert refused + loading + ready == lines
    return refused, loading, ready


async def status_of(llama: FakeLlama, line: Body) -> tuple[str, str]:
    body = '{"messages": []}' if line["method"] == "POST" else ""
    answer = await answer_of(llama, Request(line["method"], line["path"], body))
    return answer.head.split()[1], answer.chunks[0]
