"""The routes of turns."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.params import RawBody
from sse_starlette.sse import EventSourceResponse

from api.cursor import parse_cursor
from api.hub import Hub
from api.openapi.chunks import stream_spec
from api.openapi.examples import (
    CANCELLED,
    CANCELLING,
    DONE,
    FAILED,
    RETRY,
    RUNNING,
    WAITING,
    answer_spec,
)
from api.openapi.operations import Accepting, Answering, Posting, TakingTurn
from api.openapi.problems import ADMISSION, BODY, problem_specs
from api.parameters import After, IdempotencyKey, LastEventId, TurnId
from api.schemas import Turn, present, turn_path
from api.service import Accepted, TurnService
from api.sse import respond_with_events
from shared.record import TurnRecord


@post(
    "/turns",
    status_code=202,
    summary="Post a turn",
    tags=["turns"],
    operation_class=Posting,
    responses={
        200: answer_spec("The turn that this idempotency key was used for.", done=DONE),
        202: answer_spec("The new turn.", queued=WAITING),
        **problem_specs(*BODY, *ADMISSION),
    },
)
async def post_turn(
    service: NamedDependency[TurnService], body: RawBody, idempotency_key: IdempotencyKey = None
) -> Response[Turn]:
    """Queues a turn, whether or not a worker is there to run it."""
    return _answer(await service.accept(body, idempotency_key))


@post(
    "/turns/stream",
    status_code=200,
    summary="Post a turn and follow it",
    tags=["turns"],
    operation_class=TakingTurn,
    responses={
        200: stream_spec("The chunks of the new turn; X-Turn-Id and X-Thread-Id say which."),
        **problem_specs(*BODY, *ADMISSION, "gone"),
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
    if repeated:
        turn = await service.go_on(turn.turn_id, 0)
    return _follow(hub, turn, 0)


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
    return _follow(hub, await service.go_on(turn_id, cursor), cursor)


@post(
    "/turns/{turn_id:str}/cancel",
    status_code=202,
    summary="Cancel a turn",
    tags=["turns"],
    operation_class=Answering,
    responses={
        200: answer_spec("The turn had ended before.", done=DONE, cancelled=CANCELLED),
        202: answer_spec(
            "It is stored: `cancelled` is what had never started, `cancelling` what a worker has "
            "yet to undo.",
            cancelled=CANCELLED,
            cancelling=CANCELLING,
        ),
        **problem_specs("unknown_turn", "redis_away"),
    },
)
async def cancel_turn(service: NamedDependency[TurnService], turn_id: TurnId) -> Response[Turn]:
    """Stops a turn and takes what it did out of its thread again; asked again, it changes nothing.

    The turn's last chunk says how it ended: it may have been done before.
    """
    turn, ended_before = await service.cancel(turn_id)
    return Response(present(turn), status_code=200 if ended_before else 202)


@post(
    "/turns/{turn_id:str}/retry",
    status_code=202,
    summary="Retry a turn",
    tags=["turns"],
    operation_class=Accepting,
    responses={
        200: answer_spec("The retry that this idempotency key was used for.", queued=RETRY),
        202: answer_spec("The new turn.", queued=RETRY),
        **problem_specs("unknown_turn", "not_retryable", *ADMISSION),
    },
)
async def retry_turn(
    service: NamedDependency[TurnService],
    turn_id: TurnId,
    idempotency_key: IdempotencyKey = None,
) -> Response[Turn]:
    """Queues a new turn with the input, agent and thread of one that failed or was cancelled."""
    return _answer(await service.retry(turn_id, idempotency_key))


def _answer(accepted: Accepted) -> Response[Turn]:
    return Response(
        present(accepted.turn),
        status_code=200 if accepted.repeated else 202,
        headers={"Location": turn_path(accepted.turn.turn_id)},
    )


def _follow(hub: Hub, turn: TurnRecord, cursor: int) -> EventSourceResponse:
    headers = {"X-Turn-Id": turn.turn_id, "X-Thread-Id": turn.thread_id}
    return respond_with_events(hub.follow(turn.turn_id, cursor), hub.farewell, headers)
