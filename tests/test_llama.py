"""What the model server says of itself, beside the chat."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

from shared.requests import ModelStatus, Slot
from tests.fake_llama import FakeLlama, Reply
from tests.fake_llama.connection import Closed, Connection
from worker import llama as llama_module
from worker.llama import LlamaServer, open_llama
from worker.settings import WorkerSettings

Answers = dict[str, tuple[int, Any]]
"""Status and body by path; bytes are sent as they are, the rest as JSON, and None is never sent."""

HEALTH: Answers = {"/health": (200, {"status": "ok"})}
PROPS: Answers = {
    "/props": (200, {"model_alias": "m", "default_generation_settings": {"n_ctx": 9}})
}
SLOTS: Answers = {"/slots": (200, [{"is_processing": False}])}
FORBIDDEN = (501, {"error": {"code": 501, "message": "This server does not support slots"}})


class Canned:
    """A server of fixed answers that counts what it is asked; 404 for the rest."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked = Counter[str]()

    async def serve(self, connection: Connection) -> None:
        with suppress(Closed):
            async with connection:
                while request := await connection.read_request():
                    self.asked[request.path] += 1
                    status, body = self.answers.get(request.path, (404, {}))
                    if body is None:
                        await connection.unless_gone(asyncio.Event().wait)
                    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
                    await connection.respond(status, content)


@asynccontextmanager
async def canned(answers: Answers) -> AsyncGenerator[tuple[LlamaServer, Canned]]:
    server = Canned(answers)
    async with asyncio.TaskGroup() as serving:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.create_task(server.serve(Connection(reader, writer)))

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            async with client_of(f"http://127.0.0.1:{port}/v1/") as llama:
                yield llama, server


@asynccontextmanager
async def client_of(base_url: str) -> AsyncGenerator[LlamaServer]:
    async with open_llama(WorkerSettings(LLAMA_BASE_URL=base_url)) as llama:
        yield llama


async def test_an_idle_server() -> None:
    async with FakeLlama(n_ctx=4096) as fake, client_of(fake.base_url) as llama:
        assert await llama.status() == ModelStatus(
            llama="ok", model="fake.gguf", n_ctx=4096, slot=Slot(False, 0, 0, 0)
        )


async def test_no_proxy_stands_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with FakeLlama() as fake, client_of(fake.base_url) as llama:
        assert (await llama.status()).llama == "ok"


async def test_a_server_at_work() -> None:
    gate = asyncio.Event()
    reply = Reply("a", prompt_tokens=30, cached=10, gate=gate)
    async with FakeLlama([reply]) as fake, client_of(fake.base_url) as llama:
        _, writer = await asyncio.open_connection("127.0.0.1", fake.port)
        body = b'{"messages": [{"role": "user", "content": "hi"}], "stream": true}'
        head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await fake.wait_for(lambda: fake.calls and fake.calls[0].state == "prefill")
        assert (await llama.status()).slot == Slot(True, 10, 10, 0)
        writer.close()
        await writer.wait_closed()


async def test_a_server_that_loads_its_model() -> None:
    async with FakeLlama(loading=True) as fake, client_of(fake.base_url) as llama:
        assert await llama.status() == ModelStatus(llama="loading")


async def test_a_server_that_is_not_there() -> None:
    async with FakeLlama() as fake:
        pass
    async with client_of(fake.base_url) as llama:
        assert await llama.status() == ModelStatus(llama="down")


OK = ModelStatus(llama="ok", model="m", n_ctx=9)
DOWN = ModelStatus(llama="down")

TABLE: dict[str, tuple[Answers, ModelStatus]] = {
    "all": (
        HEALTH | PROPS | SLOTS,
        ModelStatus(llama="ok", model="m", n_ctx=9, slot=Slot(False, None, None, None)),
    ),
    "slots forbidden": (HEALTH | PROPS | {"/slots": FORBIDDEN}, OK),
    "slots unknown": (HEALTH | PROPS, OK),
    "no slots": (HEALTH | PROPS | {"/slots": (200, [])}, OK),
    "health only": (HEALTH, ModelStatus(llama="ok")),
    "a path for a name": (
        HEALTH | {"/props": (200, {"model_path": "/secret/place/model.gguf"})},
        ModelStatus(llama="ok", model="model.gguf"),
    ),
    "a path for an alias": (
        HEALTH | {"/props": (200, {"model_alias": "/secret/place/model.gguf"})},
        ModelStatus(llama="ok", model="model.gguf"),
    ),
    "an alias with a slash": (
        HEALTH | {"/props": (200, {"model_alias": "org/model"})},
        ModelStatus(llama="ok", model="org/model"),
    ),
    "garbage": (HEALTH | {"/props": (200, b"<html>")}, ModelStatus(llama="ok")),
    "no text": (HEALTH | PROPS | {"/slots": (200, b"\xff\xfe")}, OK),
    "another shape": (HEALTH | PROPS | {"/slots": (200, {"no": "list"})}, OK),
    "another server": ({"/health": (404, {})}, DOWN),
    "unavailable": ({"/health": (503, {})}, ModelStatus(llama="loading")),
}


@pytest.mark.parametrize(("answers", "expected"), TABLE.values(), ids=TABLE.keys())
async def test_what_a_server_says_is_shown_and_the_rest_is_unknown(
    answers: Answers, expected: ModelStatus
) -> None:
    async with canned(answers) as (llama, _):
        assert await llama.status() == expected


async def test_an_answer_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llama_module, "PROBE_S", 0.05)
    async with canned({**HEALTH, "/props": (200, None)}) as (llama, _):
        assert await llama.status() == ModelStatus(llama="ok")


async def test_a_server_is_asked_once_however_many_want_to_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llama_module, "FRESH_S", 3600)
    async with canned({**HEALTH, **PROPS, **SLOTS}) as (llama, server):
        answers = await asyncio.gather(*(llama.status() for _ in range(20)))
        server.answers = {}
        answers.append(await llama.status())
    assert len({msgspec.json.encode(answer) for answer in answers}) == 1
    assert server.asked == {"/health": 1, "/props": 1, "/slots": 1}


async def test_what_was_said_gets_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_module, "FRESH_S", 0)
    async with canned({**HEALTH, **PROPS, **SLOTS}) as (llama, server):
        assert (await llama.status()).llama == "ok"
        server.answers = {"/health": (503, {})}
        assert (await llama.status()).llama == "loading"


def test_slots_are_asked_no_faster_than_the_server_bears() -> None:
    assert llama_module.FRESH_S >= 1.5
