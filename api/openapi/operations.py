"""What the schema says of an operation beyond its handler's types: body, headers, streams."""

from dataclasses import dataclass, replace

from litestar.openapi.spec import (
    Example,
    OpenAPIHeader,
    OpenAPIMediaType,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    Reference,
    Schema,
)

from api import problems
from api.openapi import chunks

TEXT = Schema(type=OpenAPIType.STRING)
SECONDS = Schema(type=OpenAPIType.INTEGER, minimum=0)

HEADERS = {
    "401": {"WWW-Authenticate": OpenAPIHeader(schema=TEXT, description="`Bearer`.")},
    "429": {"Retry-After": OpenAPIHeader(schema=SECONDS, description="Seconds to wait.")},
}
STREAM_HEADERS = {
    "X-Turn-Id": OpenAPIHeader(schema=TEXT, description="Whose chunks these are."),
    "X-Thread-Id": OpenAPIHeader(schema=TEXT, description="The turn's conversation."),
}
LOCATION = {"Location": OpenAPIHeader(schema=TEXT, description="Where the turn is found.")}


@dataclass
class Answering(Operation):
    """An operation with its answers by status, each with its headers."""

    def __post_init__(self) -> None:
        """Completes the answers."""
        answers = (self.responses or {}).items()
        self.responses = {
            status: _complete(status, answer)
            for status, answer in sorted(answers)
            if isinstance(answer, OpenAPIResponse) and not _is_guess(status, answer)
        }


@dataclass
class TakingTurn(Answering):
    """An operation that takes a turn, which its handler reads by itself."""

    def __post_init__(self) -> None:
        """Describes the body."""
        super().__post_init__()
        self.request_body = Reference("#/components/requestBodies/NewTurn")


@dataclass
class Accepting(Answering):
    """An operation that accepts a turn and says where it is found."""

    def __post_init__(self) -> None:
        """Describes where that is said."""
        super().__post_init__()
        for status in ("200", "202"):
            answer = (self.responses or {}).get(status)
            if isinstance(answer, OpenAPIResponse):
                answer.headers = {**LOCATION}


@dataclass
class Posting(TakingTurn, Accepting):
    """An operation that takes a turn in its body and says where it is found."""


def _is_guess(status: str, answer: OpenAPIResponse) -> bool:
    """Litestar (2.25) expects errors of its own, which are problems here like all others."""
    return status >= "400" and problems.MEDIA_TYPE not in (answer.content or {})


def _complete(status: str, answer: OpenAPIResponse) -> OpenAPIResponse:
    content = {kind: _complete_media(kind, media) for kind, media in (answer.content or {}).items()}
    streams = chunks.MEDIA_TYPE in content
    headers = STREAM_HEADERS if streams else HEADERS.get(status, {})
    return replace(answer, content=content or None, headers={**headers})


def _complete_media(kind: str, media: OpenAPIMediaType) -> OpenAPIMediaType:
    """Litestar (2.25) writes the ids of examples, which are their keys, into them as well."""
    examples = {
        name: replace(example, id=None) if isinstance(example, Example) else example
        for name, example in (media.examples or {}).items()
    }
    schema = _describe_stream(media.schema) if kind == chunks.MEDIA_TYPE else media.schema
    return replace(media, schema=schema, examples=examples or None)


def _describe_stream(chunk: Schema | Reference | None) -> Schema:
    """A stream is a text for HTTP, and chunks for who reads it."""
    return Schema(
        type=OpenAPIType.STRING,
        content_media_type=chunks.MEDIA_TYPE,
        content_schema=chunk,
        description="Server-sent events; the `data` of each is a chunk.",
    )
