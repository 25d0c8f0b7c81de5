"""What the schema says beyond the handlers' types: bodies, streams, problems, examples."""

from collections import defaultdict
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Response, Router
from litestar.datastructures import ResponseHeader
from litestar.enums import MediaType
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import (
    Components,
    Example,
    OpenAPIMediaType,
    OpenAPIType,
    Operation,
    RequestBody,
    Schema,
    SecurityScheme,
)

from api import problems
from api.problems import Problem, describe_problem, problem_response

CATALOGUE: dict[str, tuple[int, str]] = {
    "not_json": (400, "The body is not JSON in UTF-8."),
    "bad_cursor": (400, "Last-Event-ID or after is not the number of a chunk."),
    "bad_request": (400, "Bad Request."),
    "unauthorized": (401, "Send the header Authorization: Bearer with the API's token."),
    "foreign_origin": (403, "This origin may not ask."),
    "foreign_host": (403, "This is not the name of this host."),
    "unknown_turn": (404, "No turn of this id is known."),
    "agent_mismatch": (409, "Thread T belongs to agent 'chat'."),
    "idempotency_conflict": (409, "This idempotency key was used before with another body."),
    "gone": (410, "The chunks of this turn are no longer kept."),
    "too_large": (413, "text is longer than 65536 bytes."),
    "invalid": (422, "Give either text or input."),
    "queue_full": (429, "The queue is full: 32 turns are waiting."),
    "not_implemented": (501, "A turn that has started cannot be cancelled yet."),
    "redis_away": (503, "Redis cannot be reached."),
    "not_ready": (503, "A turn would not run now."),
}
EVERYWHERE = ("bad_request", "foreign_origin", "foreign_host")
ADMISSION = (
    *("not_json", "agent_mismatch", "idempotency_conflict", "too_large", "invalid"),
    *("queue_full", "redis_away"),
)

EXAMPLE_ID = "0198c5c2-6f5e-7cc1-b0a4-2d0f6c1e8a11"
EXAMPLE_STREAM = (
    "retry: 2000\nid: 1\nevent: queued\n"
    f'data: {{"seq":1,"turn_id":"{EXAMPLE_ID}","type":"queued","content":"",'
    '"completed":false,"metadata":{"position":0,"eta_s":null}}\n\n'
)

LOCATION = ResponseHeader(
    name="Location", description="Where the turn is found.", documentation_only=True
)

TURN_BODY = Schema(
    type=OpenAPIType.OBJECT,
    description="Either text or input.",
    properties={
        "text": Schema(
            type=OpenAPIType.STRING, description="A message; at most 65536 bytes once stripped."
        ),
        "input": Schema(
            type=OpenAPIType.OBJECT, description="For an agent that takes an object instead."
        ),
        "thread_id": Schema(
            type=OpenAPIType.STRING,
            pattern="^[A-Za-z0-9_-]{1,128}$",
            description="The conversation; without it a new one begins.",
        ),
        "agent": Schema(
            type=OpenAPIType.STRING, description="Without it the thread's own, or the default."
        ),
    },
    additional_properties=False,
)


@dataclass
class PostTurn(Operation):
    """An operation whose body the handler reads by itself."""

    def __post_init__(self) -> None:
        """Documents the body."""
        example = Example(summary="a first message", value={"text": "Why is the sky blue?"})
        media_type = OpenAPIMediaType(schema=TURN_BODY, examples={"text": example})
        self.request_body = RequestBody(required=True, content={MediaType.JSON: media_type})


def problem_specs(*codes: str) -> dict[int, ResponseSpec]:
    """The problems that a route may answer, and those that every route behind a token may."""
    return open_problem_specs("unauthorized", *codes)


def open_problem_specs(*codes: str) -> dict[int, ResponseSpec]:
    """The problems that a route without a token may answer, and those that every route may."""
    examples: defaultdict[int, list[Example]] = defaultdict(list)
    for code in (*EVERYWHERE, *codes):
        status, detail = CATALOGUE[code]
        value: dict[str, Any] = msgspec.to_builtins(describe_problem(status, code, detail))
        examples[status].append(Example(summary=code, value=value))
    return {status: _problem_spec(shown) for status, shown in examples.items()}


def stream_spec(description: str) -> ResponseSpec:
    """A documented stream of chunks."""
    return ResponseSpec(
        str,
        description=description,
        media_type="text/event-stream",
        generate_examples=False,
        examples=[Example(summary="the first event", value=EXAMPLE_STREAM)],
    )


def _problem_spec(examples: list[Example]) -> ResponseSpec:
    return ResponseSpec(
        Problem,
        description=" · ".join(example.summary or "" for example in examples),
        media_type=problems.MEDIA_TYPE,
        generate_examples=False,
        examples=examples,
    )


def _answer_unknown_page(response: Response[Any]) -> Response[Any]:
    """Litestar answers unknown paths beside the schema with a page of its own."""
    if response.status_code == 404:
        return problem_response(404, "not_found", "Not Found.")
    return response


def describe_api() -> OpenAPIConfig:
    """The schema as JSON at /schema."""
    bearer = SecurityScheme(type="http", scheme="bearer", description="API_TOKEN, when it is set.")
    return OpenAPIConfig(
        title="Turnkeeper",
        version=version("turnkeeper"),
        description="Durable chat turns for one local model.",
        components=Components(security_schemes={"token": bearer}),
        security=[{"token": []}, {}],
        use_handler_docstrings=True,
        render_plugins=[JsonRenderPlugin(path=["/", "/openapi.json"], media_type=MediaType.JSON)],
        openapi_router=Router(
            "/schema",
            route_handlers=[],
            include_in_schema=False,
            after_request=_answer_unknown_page,
        ),
    )
