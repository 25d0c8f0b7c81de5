"""What a request says outside of its body."""

from typing import Annotated

from litestar.openapi.spec import OpenAPIType
from litestar.params import HeaderParameter, PathParameter, QueryParameter

# How they look is said in `schema_extra`, by which nothing is refused before the handler sees it.
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="1 to 255 visible ASCII characters: the same key and request, the same turn; "
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
