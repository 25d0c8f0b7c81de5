"""One turn and the system around it, as examples."""

from litestar.openapi import ResponseSpec
from litestar.openapi.spec import Example
from msgspec import Struct
from msgspec.structs import replace

from api.schemas import (
    Live,
    Queue,
    Readiness,
    SystemStatus,
    Turn,
    TurnLinks,
    WorkerState,
    turn_path,
)
from shared.record import Failure
from shared.requests import Slot
from shared.usage import CallUsage, add_up

TURN_ID = "01a22cee-8a99-762e-bc3f-92bd7b6add43"
PATH = turn_path(TURN_ID)
ANSWER_ID = "lc_run--01a22cee-8ac6-74b4-b7af-67719db8b60c"

CALLS = [
    CallUsage(
        call_index=1,
        message_id="lc_run--01a22cee-8a9d-7b0c-9d5a-3f6b1c2d4e5f",
        input_tokens=412,
        output_tokens=24,
        cache_read=380,
        prefill_tps=174.7,
        decode_tps=56.9,
        prompt_ms=183.2,
        predicted_ms=421.8,
    ),
    CallUsage(
        call_index=2,
        message_id=ANSWER_ID,
        input_tokens=450,
        output_tokens=8,
        cache_read=436,
        prefill_tps=171.3,
        decode_tps=57.2,
        prompt_ms=81.7,
        predicted_ms=139.9,
    ),
]
USAGE = add_up(CALLS, model_calls=2)

WAITING = Turn(
    turn_id=TURN_ID,
    thread_id="tour",
    agent="chat",
    text="What is in the folder?",
    status="queued",
    position=1,
    created_at="2026-01-31T12:34:56.789Z",
    started_at=None,
    finished_at=None,
    attempt=0,
    run_id=None,
    trace_url=None,
    error=None,
    usage=None,
    links=TurnLinks(
        itself=PATH, events=f"{PATH}/events", cancel=f"{PATH}/cancel", thread="/threads/tour"
    ),
)
RUNNING = replace(
    WAITING,
    status="running",
    position=0,
    started_at="2026-01-31T12:34:57.001Z",
    attempt=1,
    run_id=TURN_ID,
)
DONE = replace(
    RUNNING, status="done", position=None, finished_at="2026-01-31T12:34:58.250Z", usage=USAGE
)
FAILED = replace(
    DONE,
    status="error",
    error=Failure("model_unavailable", "The model server is away."),
    rolled_back_messages=1,
    usage=None,
)
CANCELLING = replace(RUNNING, status="cancelling")
CANCELLED = replace(
    WAITING,
    status="cancelled",
    position=None,
    finished_at="2026-01-31T12:34:56.950Z",
    rolled_back_messages=0,
)
RETRY = replace(WAITING, position=0, retry_of="01a22cee-7f02-7d4a-9c1b-6a1f3f0d2b5e")

QUEUE = Queue(running=RUNNING, waiting=[], depth=0, limit=32, worker="alive")
STATUS = SystemStatus(
    model="my-model.gguf",
    n_ctx=8192,
    compaction_trigger_tokens=None,
    slot=Slot(busy=True, prompt_tokens=450, cached_tokens=436, decoded=3),
    worker=WorkerState(alive=True, turn_id=TURN_ID, since="2026-01-31T09:00:00.000Z"),
    queue_depth=0,
    redis="ok",
    llama="ok",
    versions={"turnkeeper": "0.1.0"},
)
LIVE = Live()
READY = Readiness(redis="ok", worker="ok", llama="ok")


def answer_spec(description: str, **examples: Struct) -> ResponseSpec:
    """An answer of the examples' common type."""
    [kind] = {type(example) for example in examples.values()}
    return ResponseSpec(
        kind,
        description=description,
        generate_examples=False,
        examples=[Example(id=name, summary=name, value=value) for name, value in examples.items()],
    )
