"""The whole service while Redis is there and says nothing."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from shared.connections import connection_pool
from shared.redis import open_redis
from tests.fake_llama import FakeLlama, Reply
from tests.service import run_service, text_of
from tests.stopped import run_stoppable
from tests.until import until
from worker import main, slot_worker

PATIENCE_S = 0.5


async def test_turns_go_on_as_if_nothing_had_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(main, "open_redis", partial(open_redis, patience_s=PATIENCE_S))
    impatient = partial(connection_pool, patience_s=PATIENCE_S)
    monkeypatch.setattr(slot_worker, "connection_pool", impatient)
    gate = asyncio.Event()
    script = [Reply(content="one two three", gate=gate), Reply(content="four"), Reply(content="5")]
    async with (
        FakeLlama(script) as llama,
        run_stoppable(tmp_path) as server,
        run_service(server.url, llama.base_url, tmp_path) as service,
    ):
        first, second = await service.post("Count."), await service.post("Go on.")
        following = [asyncio.create_task(service.follow(turn)) for turn in (first, second)]
        await llama.wait_for(lambda: bool(llama.calls))
        with server.stopped():  # while a turn runs and has something to say
            gate.set()
            await until(lambda: caplog.text.count("Trying again") >= 3)
        said = [text_of(await each) for each in following]
        with server.stopped():  # while the worker looks for turns
            await until(lambda: "Redis is away" in caplog.text)
        said.append(text_of(await service.ask("And?")))
    assert said == ["one two three", "four", "5"]
    assert len(llama.calls) == 3
