"""The body that asks for a turn, which the handlers read by themselves."""

from litestar.enums import MediaType
from litestar.openapi.spec import (
    Example,
    OpenAPIMediaType,
    OpenAPIType,
    Reference,
    RequestBody,
    Schema,
)

TEXT = Schema(
    type=OpenAPIType.STRING,
    min_length=1,
    description="A message; stripped, and then at most 65536 bytes in UTF-8.",
)
INPUT = Schema(type=OpenAPIType.OBJECT, description="What an agent takes that takes no text.")
OPTIONS: dict[str, Schema | Reference] = {
    "thread_id": Schema(
        type=OpenAPIType.STRING,
        pattern="^[A-Za-z0-9_-]{1,128}$",
        description="The conversation; without it a new one begins.",
    ),
    "agent": Schema(
        type=OpenAPIType.STRING, description="Without it the thread's own, or the default."
    ),
}


def _ask_with(name: str, value: Schema, title: str) -> Schema:
    return Schema(
        title=title,
        type=OpenAPIType.OBJECT,
        properties={name: value, **OPTIONS},
        required=[name],
        additional_properties=False,
    )


# Two whole objects, because generators of clients make nothing of `required` alone.
TURN_BODY = Schema(
    description="Either `text` or `input`.",
    one_of=[_ask_with("text", TEXT, "TextTurn"), _ask_with("input", INPUT, "InputTurn")],
)
TURN_BODIES: dict[str, Example | Reference] = {
    "text": Example(summary="a first message", value={"text": "Why is the sky blue?"}),
    "thread": Example(
        summary="the next message of a conversation",
        value={"text": "And at night?", "thread_id": "tour"},
    ),
    "input": Example(
        summary="for an agent of your own that takes an object",
        value={"input": {"host": "db-1", "free_bytes": 1024}, "agent": "mine"},
    ),
}
REQUEST_BODIES: dict[str, RequestBody | Reference] = {
    "NewTurn": RequestBody(
        required=True,
        description="At most 256 kB of JSON in UTF-8.",
        content={MediaType.JSON: OpenAPIMediaType(schema=TURN_BODY, examples=TURN_BODIES)},
    )
}
