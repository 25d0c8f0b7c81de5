"""Questions of the API, answered by the worker."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from shared import keys, requests
from shared.errors import (
    RedisAway,
    ThreadRunning,
    TurnkeeperError,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)
from shared.heartbeat import EXPIRE_S, Heartbeat, write_heartbeat
from shared.redis import Redis, open_redis
from shared.requests import ModelStatus, Request, Slot, StatusRequest, answer, ask, next_request
from tests.fake_llama import FakeLlama
from tests.redis_seen import RedisSeen, everlasting
from tests.until import until
from worker.answers import Answers
from worker.llama import open_llama
from worker.settings import WorkerSettings

STATUS = ModelStatus(llama="ok", model="m", n_ctx=4096, slot=Slot(True, 10, None, 3))
BEAT = Heartbeat(database="db", worker="process 1 on host", since=1.0, versions={})


@asynccontextmanager
async def answering(redis: Redis, url: str) -> AsyncGenerator[None]:
    """A worker that answers with what its model server says."""
    settings = WorkerSettings(LLAMA_BASE_URL=url)
    async with open_llama(settings) as llama, asyncio.TaskGroup() as beside:
        serving = beside.create_task(Answers(redis, llama).serve())
        yield
        serving.cancel()


async def test_without_a_worker_nobody_is_asked(redis: Redis, valkey: RedisSeen) -> None:
    began = time.monotonic()
    with pytest.raises(WorkerLost):
        await ask(redis, StatusRequest(), ModelStatus)
    assert time.monotonic() - began < requests.PATIENCE_S / 2
    assert valkey.dbsize() == 0


async def test_a_question_is_answered(redis: Redis, valkey: RedisSeen) -> None:
    await write_heartbeat(redis, BEAT)
    asking = asyncio.create_task(ask(redis, StatusRequest(), ModelStatus))
    request = await next_request(redis)
    assert request.question == StatusRequest()
    assert not valkey.exists(keys.question(request.request_id))
    await answer(redis, request, STATUS)
    assert await asking == STATUS
    assert everlasting(valkey) == set()


async def test_each_asker_gets_the_answer_to_its_own_question(redis: Redis) -> None:
    await write_heartbeat(redis, BEAT)
    asking = [asyncio.create_task(ask(redis, StatusRequest(), ModelStatus)) for _ in range(10)]
    taken = [await next_request(redis) for _ in asking]
    for request in reversed(taken):
        await answer(redis, request, ModelStatus(llama=request.request_id))
    answers = [(await each).llama for each in asking]
    assert sorted(answers) == sorted(request.request_id for request in taken)


async def test_the_worker_answers_for_its_model_server(redis: Redis) -> None:
    await write_heartbeat(redis, BEAT)
    async with FakeLlama(n_ctx=2048) as fake, answering(redis, fake.base_url):
        status = await ask(redis, StatusRequest(), ModelStatus)
    assert (status.llama, status.n_ctx) == ("ok", 2048)


async def test_a_worker_that_does_not_answer_is_busy(
    redis: Redis, valkey: RedisSeen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "PATIENCE_S", 0.2)
    await write_heartbeat(redis, BEAT)
    with pytest.raises(WorkerBusy, match=r"0\.2 s"):
        await ask(redis, StatusRequest(), ModelStatus)
    assert everlasting(valkey) == set()


async def test_a_question_that_nobody_waits_for_is_skipped(redis: Redis, valkey: RedisSeen) -> None:
    valkey.rpush(keys.requests(), "over", "over too", "waited for")
    valkey.set(keys.question("waited for"), msgspec.json.encode(StatusRequest()))
    assert (await next_request(redis)).request_id == "waited for"
    assert valkey.llen(keys.requests()) == 0


async def test_a_question_is_there_as_long_as_its_asker_waits(
    redis: Redis, valkey: RedisSeen
) -> None:
    await write_heartbeat(redis, BEAT)
    asking = asyncio.create_task(ask(redis, StatusRequest(), ModelStatus))
    await until(lambda: valkey.exists(keys.requests()))
    [request_id] = valkey.lrange(keys.requests(), 0, -1)
    left = valkey.pttl(keys.question(request_id.decode()))
    assert 0 < left <= math.ceil(1000 * requests.PATIENCE_S)
    asking.cancel()
    await asyncio.wait({asking})


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [(ThreadRunning("It runs."), ThreadRunning), (RedisAway("It is not said."), WorkerFailed)],
)
async def test_a_refusal_arrives_as_what_it_is(
    redis: Redis, refusal: TurnkeeperError, kind: type[TurnkeeperError]
) -> None:
    await write_heartbeat(redis, BEAT)
    asking = asyncio.create_task(ask(redis, StatusRequest(), ModelStatus))
    await answer(redis, await next_request(redis), refusal)
    with pytest.raises(kind, match=str(refusal)) as caught:
        await asking
    assert type(caught.value) is kind


async def test_unanswered_questions_go_away(redis: Redis, valkey: RedisSeen) -> None:
    await write_heartbeat(redis, BEAT)
    asking = asyncio.create_task(ask(redis, StatusRequest(), ModelStatus))
    await until(lambda: valkey.exists(keys.requests()))
    assert 0 < valkey.ttl(keys.requests()) <= 2 * requests.PATIENCE_S
    asking.cancel()
    await asyncio.wait({asking})
    assert everlasting(valkey) == set()


async def test_an_answer_that_nobody_takes_goes_away(redis: Redis, valkey: RedisSeen) -> None:
    await answer(redis, Request("r", StatusRequest()), STATUS)
    assert 0 < valkey.ttl(keys.reply("r")) <= 2 * requests.PATIENCE_S


async def test_a_question_that_the_worker_does_not_know_stops_nothing(
    redis: Redis, redis_url: str, valkey: RedisSeen
) -> None:
    await write_heartbeat(redis, BEAT)
    valkey.rpush(keys.requests(), "r")
    valkey.set(keys.question("r"), b'{"type":"new"}', ex=60)
    async with FakeLlama() as fake, open_redis(redis_url) as own, answering(own, fake.base_url):
        assert (await ask(redis, StatusRequest(), ModelStatus)).llama == "ok"


def test_a_heartbeat_outlives_the_patience_of_an_asker() -> None:
    assert EXPIRE_S > requests.PATIENCE_S
