"""The schema as a whole, and where it is served."""

from importlib.metadata import version
from typing import Any

from litestar import Response, Router
from litestar.datastructures import ResponseHeader
from litestar.enums import MediaType
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, License, SecurityScheme, Tag

from api.openapi.body import REQUEST_BODIES
from api.openapi.page import PATH, UNNAMED, show_page
from api.openapi.problems import tabulate_problems
from api.problems import problem_response

DESCRIPTION = """\
Durable chat turns for one local model. Post a turn, see its place in the queue, follow it live.

A turn is `queued`, `running`, then `done`, `error` or `cancelled`; in between it is `cancelling`
when it is cancelled after its start. Its chunks are server-sent events: `id` is the chunk's `seq`,
`event` its `type`, `data` the chunk as JSON. The stream closes after the last chunk; when it breaks
before, ask again with `Last-Event-ID`. Leaving it does not cancel the turn. A turn that was broken
off goes on in the same stream: a `rewind` says which of its chunks are void. After `error` and
`cancelled` the thread is as it was before the turn, unless the error's code is `rollback_failed`.

Every error is a problem document (RFC 9457) with a `code`:

"""
TAGS = [
    Tag(name="turns", description="Post a turn, follow it, cancel it, retry it."),
    Tag(name="service", description="The queue, the model and the processes."),
]


def describe_api() -> OpenAPIConfig:
    """The schema at /schema: a page for browsers, JSON for everybody else."""
    bearer = SecurityScheme(type="http", scheme="bearer", description="API_TOKEN, when it is set.")
    return OpenAPIConfig(
        title="Turnkeeper",
        version=version("turnkeeper"),
        description=DESCRIPTION + tabulate_problems(),
        license=License(name="MIT", identifier="MIT"),
        tags=TAGS,
        components=Components(
            security_schemes={"token": bearer}, request_bodies={**REQUEST_BODIES}
        ),
        security=[{"token": []}, {}],
        use_handler_docstrings=True,
        operation_id_creator=_name_operation,
        render_plugins=[JsonRenderPlugin(path=["/", "/openapi.json"], media_type=MediaType.JSON)],
        openapi_router=Router(
            PATH,
            route_handlers=[],
            include_in_schema=False,
            before_request=show_page,
            after_request=_answer_unknown_page,
            response_headers=[
                ResponseHeader(name="Vary", value="Accept"),
                *(ResponseHeader(name=name, value=value) for name, value in UNNAMED.items()),
            ],
        ),
    )


def _name_operation(handler: HTTPRouteHandler, *_: object) -> str:
    """The handler's own name, which is a verb and its object."""
    return handler.handler_name


def _answer_unknown_page(response: Response[Any]) -> Response[Any]:
    """Litestar answers unknown paths beside the schema with a page of its own."""
    if response.status_code == 404:
        return problem_response(404, "not_found", "Not Found.")
    return response
