"""Two questions that a supervisor asks: does the process live, and could a turn run?"""

import asyncio

import msgspec
from litestar import get
from litestar.di import NamedDependency

from api.errors import NotReady
from api.openapi.examples import LIVE, READY, answer_spec
from api.openapi.operations import Answering
from api.openapi.problems import open_problem_specs
from api.schemas import Live, Readiness
from api.status import ping, probe
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
    redis_ok, beat, model = await asyncio.gather(
        ping(redis),
        probe(read_heartbeat(redis)),
        probe(ask(redis, StatusRequest(), ModelStatus)),
    )
    readiness = Readiness(
        redis="ok" if redis_ok else "down",
        worker="ok" if beat else "lost",
        llama=model.llama if model else None,
    )
    if not readiness.ready:
        raise NotReady("A turn would not run now.", msgspec.to_builtins(readiness))
    return readiness
