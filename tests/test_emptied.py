"""Redis comes back empty, in the middle of a turn and between two."""

import asyncio
from pathlib import Path

from shared import keys
from shared.chunks import type_of
from tests.fake_llama import FakeLlama, Reply
from tests.redis_seen import RedisSeen, log_of
from tests.service import run_api, run_service, run_worker, text_of
from tests.until import until

WORDS = "Some of this is said before, and some of it after."


async def test_a_running_turn_ends_with_all_of_its_chunks(
    redis_url: str, valkey: RedisSeen, tmp_path: Path
) -> None:
    held = asyncio.Event()
    replies = [Reply(WORDS, hang_after=4, release=held), Reply("Yes.")]
    async with (
        FakeLlama(replies) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        turn_id = await service.post("Talk.", thread_id="a")
        await until(lambda: len(log_of(valkey, turn_id)) > 2)
        behind = await service.post("Never started.", thread_id="b")
        before = log_of(valkey, turn_id)
        valkey.flushall()
        # Although the turn has nothing to say meanwhile.
        await until(lambda: len(log_of(valkey, turn_id)) >= len(before))
        assert log_of(valkey, turn_id)[1 : len(before)] == before[1:]
        assert (await service.turn(turn_id))["status"] == "running"
        held.set()
        seen = await service.follow(turn_id)
        assert text_of(seen) == WORDS
        assert type_of(seen[-1]) == "done"

        assert (await service.client.get(f"/turns/{behind}")).status_code == 404
        assert type_of((await service.ask("And now?", thread_id="a"))[-1]) == "done"
        assert WORDS in str(llama.calls[-1].body["messages"])
    assert valkey.ttl(keys.turn(turn_id)) > 0


async def test_a_turn_that_had_started_is_there_again_after_the_worker_died_too(
    redis_url: str, valkey: RedisSeen, tmp_path: Path
) -> None:
    held = asyncio.Event()
    replies = [Reply(WORDS, hang_after=4, release=held), Reply(WORDS)]
    async with FakeLlama(replies) as llama, run_api(redis_url) as service:
        async with run_worker(redis_url, llama.base_url, tmp_path):
            turn_id = await service.post("Talk.", thread_id="a")
            await until(lambda: len(log_of(valkey, turn_id)) > 2)
        valkey.flushall()
        async with run_worker(redis_url, llama.base_url, tmp_path):
            await until(lambda: valkey.exists(keys.turn(turn_id)))
            seen = await service.follow(turn_id)
            turn = await service.turn(turn_id)
    assert text_of(seen) == WORDS
    assert (turn["status"], turn["text"], turn["thread_id"]) == ("done", "Talk.", "a")


async def test_a_thread_keeps_its_agent(redis_url: str, valkey: RedisSeen, tmp_path: Path) -> None:
    async with (
        FakeLlama([Reply("Hello.")]) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        await service.ask("Hello.", thread_id="a")
        valkey.flushall()
        await until(lambda: valkey.hget(keys.thread("a"), "agent") == b"chat")
        await until(lambda: valkey.ttl(keys.thread("a")) > 0)
