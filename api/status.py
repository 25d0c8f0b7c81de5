"""The state of everything that a turn needs, asked of each part, none of which may be missed."""

import asyncio
from collections.abc import Awaitable
from importlib.metadata import version
from typing import TypeVar

from litestar import get
from litestar.di import NamedDependency

from api.deadline import redis_deadline
from api.openapi.examples import QUEUE, STATUS, answer_spec
from api.openapi.operations import Answering
from api.openapi.problems import problem_specs
from api.schemas import Queue, SystemStatus, WorkerState, format_time, present
from api.service import TurnService
from api.settings import ApiSettings
from shared.errors import TurnkeeperError
from shared.heartbeat import Heartbeat, read_heartbeat
from shared.redis import Redis
from shared.requests import PATIENCE_S, ModelStatus, StatusRequest, ask
from shared.turns import QueueSnapshot

PROBE_S = 2.0

T = TypeVar("T")


@get(
    "/queue",
    summary="The queue",
    tags=["service"],
    operation_class=Answering,
    responses={200: answer_spec("The queue.", queue=QUEUE), **problem_specs("redis_away")},
)
async def get_queue(
    service: NamedDependency[TurnService],
    settings: NamedDependency[ApiSettings],
    redis: NamedDependency[Redis],
) -> Queue:
    """The running turn, those that wait, in order, and how many may."""
    running, waiting = await service.queue()
    async with redis_deadline():
        beat = await read_heartbeat(redis)
    return Queue(
        running=present(running) if running else None,
        waiting=[present(turn) for turn in waiting],
        depth=len(waiting),
        limit=settings.MAX_QUEUE,
        worker="alive" if beat else "lost",
    )


@get(
    "/status",
    summary="The whole system at a glance",
    tags=["service"],
    operation_class=Answering,
    responses={200: answer_spec("The system.", status=STATUS), **problem_specs()},
)
async def get_status(
    service: NamedDependency[TurnService], redis: NamedDependency[Redis]
) -> SystemStatus:
    """Model, slot, worker and queue; what could not be learned is null."""
    queue, redis_ok, beat, model = await asyncio.gather(
        probe(service.queue()),
        ping(redis),
        probe(read_heartbeat(redis)),
        probe(ask(redis, StatusRequest(), ModelStatus), PATIENCE_S + PROBE_S),
    )
    return SystemStatus(
        model=model.model if model else None,
        n_ctx=model.n_ctx if model else None,
        compaction_trigger_tokens=model.compaction_trigger_tokens if model else None,
        slot=model.slot if model else None,
        worker=_describe_worker(beat, queue) if redis_ok else WorkerState(alive=None),
        queue_depth=len(queue.waiting) if queue else None,
        redis="ok" if redis_ok else "down",
        llama=model.llama if model else None,
        versions={"turnkeeper": version("turnkeeper"), **(beat.versions if beat else {})},
    )


async def probe(question: Awaitable[T], seconds: float = PROBE_S) -> T | None:
    """The answer, or None when there is none in time."""
    try:
        async with redis_deadline(seconds):
            return await question
    except TurnkeeperError:
        return None


async def ping(redis: Redis) -> bool:
    """Redis answers."""
    return await probe(_pong(redis)) is not None


async def _pong(redis: Redis) -> bool:
    await read_heartbeat(redis)
    return True


def _describe_worker(beat: Heartbeat | None, queue: QueueSnapshot | None) -> WorkerState:
    if beat is None:
        return WorkerState(alive=False)
    running = queue.running if queue else None
    return WorkerState(
        alive=True,
        turn_id=running.turn_id if running else None,
        since=format_time(beat.since),
    )
