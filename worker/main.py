"""Puts the worker together, runs it, and takes it apart again."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from importlib.metadata import version
from signal import SIGTERM
from typing import Any, Literal

from shared.claims import Claims
from shared.errors import RedisAway
from shared.heartbeat import RENEW_S, Heartbeat, end_heartbeat, write_heartbeat
from shared.lane import Lane
from shared.lock import describe_process
from shared.redis import Redis, open_redis
from worker.agents.registry import Deps, build_agents
from worker.answers import Answers
from worker.bookkeeper import Bookkeeper
from worker.checkpoints import open_checkpoints
from worker.insist import insist
from worker.last_word import say_last_word
from worker.llama import open_llama
from worker.llm import open_model
from worker.lookout import Lookout
from worker.memory import Memory
from worker.owner import await_queue, describe_database, own
from worker.recovery import Recovery
from worker.saver_version import check_saver
from worker.settings import WorkerSettings
from worker.slot_worker import GOODBYE_S, SlotWorker
from worker.stop import Call, Stop
from worker.turns import TurnRunner

LIBRARIES = (
    "turnkeeper",
    "arq",
    "redis",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "langchain-core",
    "langchain-openai",
    "deepagents",
    "langsmith",
)

log = logging.getLogger(__name__)


async def serve(
    settings: WorkerSettings, *, wait: bool = False, signals: Stop | Literal[False] = False
) -> None:
    """Runs turns until told to stop; raises CannotStart or SettingsError when it cannot begin."""
    versions = {name: version(name) for name in LIBRARIES}
    check_saver()
    log.info("Versions: %s", ", ".join(f"{name} {of}" for name, of in versions.items()))
    async with (
        own(settings.CHECKPOINT_DB, wait=wait),
        open_checkpoints(settings.CHECKPOINT_DB) as saver,
        open_model(settings, saver.gate.check_caller) as model,
        open_llama(settings) as llama,
        open_redis(settings.REDIS_URL) as redis,
    ):
        agents = await build_agents(Deps(model, saver, settings))
        await await_queue(redis, settings.CHECKPOINT_DB, wait=wait)
        claims, memory = Claims(redis, settings.lifetimes), Memory(saver, agents)
        lane = Lane(redis, settings.lifetimes)
        recovery = Recovery(lane, claims, memory)
        await recovery.start()
        runner, book = TurnRunner(claims, memory, agents, settings), Bookkeeper(lane, memory)
        worker = SlotWorker(settings.REDIS_URL, runner.run, runner.stop)
        lookout = Lookout(worker, runner, book, recovery, memory)
        beat = _describe(settings, versions)
        farewell = partial(say_last_word, settings, runner)
        with _stopping(worker, farewell, signals):
            await _run(
                worker,
                keep_beating(redis, beat),
                lookout.keep_looking(),
                lookout.hear(redis),
                Answers(redis, llama).serve(),
                book.keep(),
            )
        with suppress(RedisAway, TimeoutError):
            async with asyncio.timeout(GOODBYE_S):
                await end_heartbeat(redis)


def _describe(settings: WorkerSettings, versions: dict[str, str]) -> Heartbeat:
    return Heartbeat(
        worker=describe_process(),
        database=describe_database(settings.CHECKPOINT_DB),
        since=time.time(),
        versions=versions,
    )


def _stopping(
    worker: SlotWorker, farewell: Call, signals: Stop | Literal[False]
) -> AbstractContextManager[None]:
    if not signals:
        return nullcontext()
    loop = asyncio.get_running_loop()

    def begin() -> None:
        loop.call_soon_threadsafe(worker.handle_sig_wait_for_completion, SIGTERM)

    return signals.in_order(begin, farewell)


async def _run(worker: SlotWorker, *beside_it: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as beside:
        tasks = [beside.create_task(each) for each in beside_it]
        log.info("Ready for turns.")
        try:
            await worker.run_until_stopped()
        finally:
            for task in tasks:
                task.cancel()


async def keep_beating(redis: Redis, beat: Heartbeat) -> None:
    """Says for ever that this worker is alive."""
    while True:
        await insist(lambda: write_heartbeat(redis, beat))
        await asyncio.sleep(RENEW_S)
