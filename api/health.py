"""Two questions that a supervisor asks: does the process live, and could a turn run?"""

import asyncio

import msgspec
from litestar import get
from litestar.di import NamedDependency

from api.errors import NotReady
from api.openapi.examples import LIVE, READY, answer_spec
from api.openapi.operations import Answering
from api.openapi.problems import open_problem_specs
from api.schemas import Live, Readiness, Worker
from api.status import probe
from shared.heartbeat import read_heartbeat
from shared.redis import Redis
from shared.requests import ModelStatus, StatusRequest, ask


@get(
    "/health/live",
    summary="Does the process live?",
    tags=["service"],
    security=[{}],
    operation_class=Answering,
    responses={200: answer_spec("It does.", live=LIVE), **open_problem_specs()},
)
async def get_live() -> Live:
    """The process answers, whatever else is down."""
    return Live()


@get(
    "/health/ready",
    summary="Could a turn run?",
    tags=["service"],
    security=[{}],
    operation_class=Answering,
    responses={200: answer_spec("It could.", ready=READY), **open_problem_specs("not_ready")},
)
async def get_ready(redis: NamedDependency[Redis]) -> Readiness:
    """Redis, worker and model server, each by name; 503 when one of them is not ok."""
    worker, model = await asyncio.gather(
        probe(_look_for_worker(redis)),
        probe(ask(redis, StatusRequest(), ModelStatus)),
    )
    readiness = Readiness(
        redis="ok" if worker else "down",
        worker=worker,
        llama=model.llama if model else None,
    )
    if not readiness.ready:
        raise NotReady("A turn would not run now.", msgspec.to_builtins(readiness))
    return readiness


async def _look_for_worker(redis: Redis) -> Worker:
    """What Redis knows of it; raises RedisAway."""
    return "ok" if await read_heartbeat(redis) else "lost"
