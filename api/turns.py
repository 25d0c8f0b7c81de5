"""The routes of turns."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import OpenAPIType
from litestar.params import HeaderParameter, PathParameter, QueryParameter, RawBody
from sse_starlette.sse import EventSourceResponse

from api.cursor import check_cursor, parse_cursor
from api.hub import Hub
from api.openapi.chunks import stream_spec
from api.openapi.examples import CANCELLED, DONE, FAILED, RUNNING, WAITING, answer_spec
from api.openapi.operations import Accepting, Answering, TakingTurn
from api.openapi.problems import ADMISSION, problem_specs
from api.schemas import Turn, present, turn_path
from api.service import TurnService
from api.sse import respond_with_events
from shared.record import TurnRecord

# How they look is said in `schema_extra`, by which nothing is refused before the handler sees it.
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="1 to 255 visible ASCII characters: the same key and body, the same turn; "
        "kept as long as the turn's record.",
        schema_extra={
            "one_of": None,
            "type": OpenAPIType.STRING,
            "pattern": "^[\\x21-\\x7e]{1,255}$",
        },
    ),
]
TurnId = Annotated[str, PathParameter(description="The turn's `turn_id`.")]
SEQ = {"one_of": None, "type": OpenAPIType.INTEGER, "minimum": 0}
LastEventId = Annotated[
    str | None,
    HeaderParameter(
        name="Last-Event-ID",
        description="`seq` of the last chunk received; the chunks after it are sent. Wins over "
        "`after`.",
        schema_extra=SEQ,
    ),
]
After = Annotated[
    str | None,
    QueryParameter(
        description="The same, where no header can be set. Without either: from the first chunk.",
        schema_extra=SEQ,
    ),
]


@post(
    "/turns",
    status_code=202,
    summary="Post a turn",
    tags=["turns"],
    operation_class=Accepting,
    responses={
        200: answer_spec("The turn that this idempotency key was used for.", done=DONE),
        202: answer_spec("The new turn.", queued=WAITING),
        **problem_specs(*ADMISSION),
    },
)
async def post_turn(
    service: NamedDependency[TurnService], body: RawBody, idempotency_key: IdempotencyKey = None
) -> Response[Turn]:
    """Queues a turn, whether or not a worker is there to run it."""
    turn, repeated = await service.accept(body, idempotency_key)
    return Response(
        present(turn),
        status_code=200 if repeated else 202,
        headers={"Location": turn_path(turn.turn_id)},
    )


@post(
    "/turns/stream",
    status_code=200,
    summary="Post a turn and follow it",
    tags=["turns"],
    operation_class=TakingTurn,
    responses={
        200: stream_spec("The chunks of the new turn; X-Turn-Id and X-Thread-Id say which."),
        **problem_specs(*ADMISSION, "gone"),
    },
)
async def post_turn_and_stream(
    service: NamedDependency[TurnService],
    hub: NamedDependency[Hub],
    body: RawBody,
    idempotency_key: IdempotencyKey = None,
) -> EventSourceResponse:
    """Queues a turn and follows it; a repeated idempotency key replays it from its first chunk."""
    turn, repeated = await service.accept(body, idempotency_key)
    return await _stream(service, hub, turn, 0) if repeated else _follow(hub, turn, 0)


@get(
    "/turns/{turn_id:str}",
    summary="A turn",
    tags=["turns"],
    operation_class=Answering,
    responses={
        200: answer_spec("The turn.", queued=WAITING, running=RUNNING, done=DONE, error=FAILED),
        **problem_specs("unknown_turn", "redis_away"),
    },
)
async def get_turn(service: NamedDependency[TurnService], turn_id: TurnId) -> Turn:
    """The turn as it is now."""
    return present(await service.read(turn_id))


@get(
    "/turns/{turn_id:str}/events",
    summary="Follow a turn",
    tags=["turns"],
    operation_class=Answering,
    responses={
        200: stream_spec("The chunks after the cursor, until the turn's last."),
        204: ResponseSpec(None, description="The turn has ended and the cursor is at its end."),
        **problem_specs("bad_cursor", "unknown_turn", "gone", "redis_away"),
    },
)
async def get_events(
    service: NamedDependency[TurnService],
    hub: NamedDependency[Hub],
    turn_id: TurnId,
    last_event_id: LastEventId = None,
    after: After = None,
) -> EventSourceResponse:
    """Follows a turn; leaving does not cancel it."""
    cursor = parse_cursor(last_event_id, after)
    return await _stream(service, hub, await service.read(turn_id), cursor)


@post(
    "/turns/{turn_id:str}/cancel",
    status_code=202,
    summary="Cancel a turn",
    tags=["turns"],
    operation_class=Answering,
    responses={
        200: answer_spec("The turn had ended before.", done=DONE, cancelled=CANCELLED),
        202: answer_spec("It was cancelled.", cancelled=CANCELLED),
        **problem_specs("unknown_turn", "not_implemented", "redis_away"),
    },
)
async def cancel_turn(service: NamedDependency[TurnService], turn_id: TurnId) -> Response[Turn]:
    """Stops a turn that has not started, which ends it at once."""
    turn, ended_before = await service.cancel(turn_id)
    return Response(present(turn), status_code=200 if ended_before else 202)


async def _stream(
    service: TurnService, hub: Hub, turn: TurnRecord, cursor: int
) -> EventSourceResponse:
    check_cursor(turn, cursor, has_log=await service.has_log(turn.turn_id))
    return _follow(hub, turn, cursor)


def _follow(hub: Hub, turn: TurnRecord, cursor: int) -> EventSourceResponse:
    headers = {"X-Turn-Id": turn.turn_id, "X-Thread-Id": turn.thread_id}
    return respond_with_events(hub.follow(turn.turn_id, cursor), hub.farewell, headers)
