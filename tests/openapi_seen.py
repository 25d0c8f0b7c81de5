"""The schema as a client sees it, and what it says of an answer."""

from collections.abc import Iterator
from typing import Any, cast

import httpx
from jsonschema import Draft202012Validator

from shared import chunks
from shared.chunks import Chunk

Json = dict[str, Any]
Route = tuple[str, str]

SAYING = {"location", "retry-after", "x-turn-id", "x-thread-id", "www-authenticate"}
"""Headers that tell a client something."""


async def read_schema(api: httpx.AsyncClient) -> Json:
    answer = await api.get("/schema")
    assert answer.headers["content-type"] == "application/json"
    assert (await api.get("/schema/openapi.json")).json() == answer.json()
    return answer.json()


def operations(schema: Json) -> dict[Route, Json]:
    return {
        (method, path): operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }


def responses(schema: Json) -> Iterator[tuple[tuple[str, str, str], Json]]:
    for (method, path), operation in operations(schema).items():
        for status, response in operation["responses"].items():
            yield (method, path, status), response


def objects(value: Any) -> Iterator[Json]:
    """Every object in a document, those in others too."""
    if isinstance(value, dict):
        yield cast(Json, value)
        for child in cast(Json, value).values():
            yield from objects(child)
    elif isinstance(value, list):
        for child in cast(list[Any], value):
            yield from objects(child)


def read_body(schema: Json) -> Json:
    """What is said of the body that asks for a turn."""
    return schema["components"]["requestBodies"]["NewTurn"]["content"]["application/json"]


def read_events(stream: str) -> list[tuple[int, Chunk]]:
    """The chunks of an example, which is exactly what is sent."""
    head, *events = stream.removesuffix("\n\n").split("\n\n")
    assert head.startswith("retry: 2000\nid: 1\nevent: queued\n")
    found: list[tuple[int, Chunk]] = []
    for seq, event in enumerate([head.removeprefix("retry: 2000\n"), *events], 1):
        number, kind, data = event.split("\n")
        parsed, chunk = chunks.parse(data.removeprefix("data: "))
        assert (number, parsed) == (f"id: {seq}", seq)
        assert kind == f"event: {chunks.type_of(chunk)}"
        assert chunk.completed == (seq == len(events) + 1)
        found.append((seq, chunk))
    return found


def component(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def check(schema: Json, of: Json, value: Any) -> None:
    """The value is what one of the document's schemas says."""
    validator: Any = Draft202012Validator({"components": schema["components"], "allOf": [of]})
    validator.validate(value)  # whose own types leave the most unknown


def check_whole(schema: Json, of: Json, value: Any) -> None:
    """The same, and an object has nothing that the schema does not name."""
    strict: Json = {"unevaluatedProperties": False} if isinstance(value, dict) else {}
    check(schema, {"allOf": [of], **strict}, value)


def check_answer(schema: Json, route: Route, answer: httpx.Response) -> None:
    """Status, headers and body are described."""
    response = operations(schema)[route]["responses"][str(answer.status_code)]
    described = {name.lower() for name in response.get("headers", {})}
    assert SAYING & answer.headers.keys() == described
    if content := response.get("content"):
        media_type = answer.headers["content-type"].partition(";")[0]
        is_json = media_type.endswith("json")
        check_whole(
            schema, content[media_type]["schema"], answer.json() if is_json else answer.text
        )
    else:
        assert answer.content == b""
