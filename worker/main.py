"""Puts the worker together, runs it, and takes it apart again."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Any

from shared.claims import Claims
from shared.errors import RedisAway
from shared.heartbeat import RENEW_S, Heartbeat, end_heartbeat, write_heartbeat
from shared.lock import describe_process
from shared.redis import Redis, open_redis
from worker.agents.registry import Deps, build_agents
from worker.answers import Answers
from worker.bookkeeper import Bookkeeper
from worker.checkpoints import open_checkpoints
from worker.control import Orders, hear_control
from worker.insist import insist
from worker.llama import open_llama
from worker.llm import open_model
from worker.memory import Memory
from worker.owner import await_queue, describe_database, own
from worker.recovery import recover
from worker.saver_version import check_saver
from worker.settings import WorkerSettings
from worker.slot_worker import SlotWorker
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


async def serve(settings: WorkerSettings, *, wait: bool = False, signals: bool = True) -> None:
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
        await recover(claims, memory)
        runner, book = TurnRunner(claims, memory, agents, settings), Bookkeeper(claims, memory)
        worker = SlotWorker(settings.REDIS_URL, runner.run, runner.stop, handle_signals=signals)
        beat = Heartbeat(
            worker=describe_process(),
            database=describe_database(settings.CHECKPOINT_DB),
            since=time.time(),
            versions=versions,
        )
        await _run(
            worker,
            keep_beating(redis, beat),
            keep_looking(partial(catch_up, worker, runner, book)),
            Answers(redis, llama).serve(),
            book.keep(),
            hear(redis, worker, runner, book),
        )
        with suppress(RedisAway):
            await end_heartbeat(redis)


async def _run(worker: SlotWorker, *beside_it: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as beside:
        tasks = [beside.create_task(each) for each in beside_it]
        log.info("Ready for turns.")
        try:
            await worker.run_until_stopped()
        finally:
            for task in tasks:
                task.cancel()


async def hear(redis: Redis, worker: SlotWorker, runner: TurnRunner, book: Bookkeeper) -> None:
    """Does for ever what the API asks for."""

    orders: Orders = {
        "wake": lambda _: worker.wake(),
        "cancel": runner.cancel,
        "unrecorded": lambda _: book.wake(),
    }
    await hear_control(redis, orders, partial(catch_up, worker, runner, book))


async def catch_up(worker: SlotWorker, runner: TurnRunner, book: Bookkeeper) -> None:
    """Looks for what may have been asked for unheard; may raise RedisAway."""
    worker.wake()
    book.wake()
    await runner.look_for_cancel()


async def keep_looking(look: Callable[[], Awaitable[None]]) -> None:
    """Does so for ever: a connection may be dead without having been closed."""
    while True:
        await insist(look)
        await asyncio.sleep(RENEW_S)


async def keep_beating(redis: Redis, beat: Heartbeat) -> None:
    """Says for ever that this worker is alive."""
    while True:
        await insist(lambda: write_heartbeat(redis, beat))
        await asyncio.sleep(RENEW_S)
