"""Puts the worker together, runs it, and takes it apart again."""

import asyncio
import logging
import time
from contextlib import suppress
from importlib.metadata import version

from shared.claims import Claims
from shared.errors import RedisAway
from shared.heartbeat import RENEW_S, Heartbeat, end_heartbeat, write_heartbeat
from shared.lock import describe_process
from shared.redis import Redis, open_redis
from worker.agents.registry import Deps, build_agents
from worker.answers import Answers
from worker.checkpoints import open_checkpoints
from worker.insist import insist
from worker.llama import open_llama
from worker.llm import open_model
from worker.owner import await_queue, describe_database, own
from worker.recovery import recover
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
    log.info("Versions: %s", ", ".join(f"{name} {of}" for name, of in versions.items()))
    async with (
        own(settings.CHECKPOINT_DB, wait=wait),
        open_checkpoints(settings.CHECKPOINT_DB) as saver,
        open_model(settings) as model,
        open_llama(settings) as llama,
        open_redis(settings.REDIS_URL) as redis,
    ):
        agents = await build_agents(Deps(model, saver, settings))
        await await_queue(redis, settings.CHECKPOINT_DB, wait=wait)
        claims = Claims(redis, settings.lifetimes)
        await insist(lambda: recover(claims))
        runner = TurnRunner(claims, agents, settings)
        worker = SlotWorker(settings.REDIS_URL, runner.run, runner.stop, handle_signals=signals)
        beat = Heartbeat(
            worker=describe_process(),
            database=describe_database(settings.CHECKPOINT_DB),
            since=time.time(),
            versions=versions,
        )
        await _run(worker, Answers(redis, llama), redis, beat)


async def _run(worker: SlotWorker, answers: Answers, redis: Redis, beat: Heartbeat) -> None:
    async with asyncio.TaskGroup() as beside:
        tasks = [
            beside.create_task(keep_beating(redis, beat)),
            beside.create_task(answers.serve()),
            beside.create_task(worker.hear_control(redis)),
        ]
        log.info("Ready for turns.")
        try:
            await worker.run_until_stopped()
        finally:
            for task in tasks:
                task.cancel()
    with suppress(RedisAway):
        await end_heartbeat(redis)


async def keep_beating(redis: Redis, beat: Heartbeat) -> None:
    """Says for ever that this worker is alive."""
    while True:
        await insist(lambda: write_heartbeat(redis, beat))
        await asyncio.sleep(RENEW_S)
