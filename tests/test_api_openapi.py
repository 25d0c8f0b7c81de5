"""The schema says all that a client must know, and no more than is so."""

import re
from collections.abc import AsyncGenerator

import pytest
from openapi_spec_validator import validate

from api.errors import STATUS
from api.openapi.problems import CATALOGUE
from shared import chunks
from shared.chunks import Queued
from shared.errors import TurnkeeperError
from tests.chunk_table import TABLE, USUAL
from tests.following import standing
from tests.openapi_seen import (
    Json,
    Route,
    check_whole,
    component,
    objects,
    operations,
    read_body,
    read_events,
    read_schema,
    responses,
)
from tests.serve_api import open_api

TOKEN = {"401", "403", "500"}
ADMISSION = {"409", "422", "429", "503"}
BODY = {"400", "413"}
ROUTES = {
    ("post", "/turns"): {"200", "202", *TOKEN, *BODY, *ADMISSION},
    ("post", "/turns/stream"): {"200", "410", *TOKEN, *BODY, *ADMISSION},
    ("get", "/turns/{turn_id}"): {"200", "404", "503", *TOKEN},
    ("get", "/turns/{turn_id}/events"): {"200", "204", "400", "404", "410", "503", *TOKEN},
    ("post", "/turns/{turn_id}/cancel"): {"200", "202", "404", "503", *TOKEN},
    ("post", "/turns/{turn_id}/retry"): {"200", "202", "404", *TOKEN, *ADMISSION},
    ("get", "/queue"): {"200", "503", *TOKEN},
    ("get", "/status"): {"200", *TOKEN},
    ("get", "/health/live"): {"200", "403", "500"},
    ("get", "/health/ready"): {"200", "403", "500", "503"},
}
STREAMS = [("post", "/turns/stream"), ("get", "/turns/{turn_id}/events")]
HEADERS = {
    ("post", "/turns", "200"): {"Location"},
    ("post", "/turns", "202"): {"Location"},
    ("post", "/turns", "429"): {"Retry-After"},
    ("post", "/turns/{turn_id}/retry", "200"): {"Location"},
    ("post", "/turns/{turn_id}/retry", "202"): {"Location"},
    ("post", "/turns/{turn_id}/retry", "429"): {"Retry-After"},
    ("post", "/turns/{turn_id}/cancel", "202"): set[str](),
    ("post", "/turns/stream", "200"): {"X-Turn-Id", "X-Thread-Id"},
    ("get", "/turns/{turn_id}/events", "200"): {"X-Turn-Id", "X-Thread-Id"},
    ("get", "/queue", "401"): {"WWW-Authenticate"},
    ("get", "/queue", "200"): set[str](),
}
EXTENDED = {"gone": "GoneProblem", "not_ready": "NotReadyProblem"}


@pytest.fixture
async def schema(redis_url: str) -> AsyncGenerator[Json]:
    async with open_api(redis_url) as api:
        yield await read_schema(api)


def without_words(schema: Json) -> Json:
    return {name: value for name, value in schema.items() if name != "description"}


async def test_it_is_valid(schema: Json) -> None:
    validate(schema)  # pyright: ignore[reportArgumentType]  # wants a Mapping of Hashable


async def test_every_route_and_answer_is_there(schema: Json) -> None:
    found = {route: {*it["responses"]} for route, it in operations(schema).items()}
    assert found == ROUTES


async def test_operations_are_named_and_grouped(schema: Json) -> None:
    tags = {tag["name"] for tag in schema["tags"]}
    for (method, path), operation in operations(schema).items():
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", operation["operationId"])
        assert operation["summary"]
        assert operation["description"]
        assert {*operation["tags"]} <= tags
        assert (operation.get("security") == [{}]) == path.startswith("/health/"), method


async def test_every_body_has_an_example_and_every_example_is_right(schema: Json) -> None:
    shown = 0
    for media in (it for it in objects(schema) if "examples" in it and "schema" in it):
        for example in media["examples"].values():
            check_whole(schema, media["schema"], example["value"])
            shown += 1
    assert shown
    for route, response in responses(schema):
        for media in response.get("content", {}).values():
            assert media["examples"], route


@pytest.mark.parametrize(("kind", "status"), STATUS.items())
def test_a_problem_is_described_with_the_status_that_it_has(
    kind: type[TurnkeeperError], status: int
) -> None:
    described = CATALOGUE.get(kind.code)
    assert described is None or described.status == status


async def test_every_example_of_a_component_is_right(schema: Json) -> None:
    for it in objects(schema["components"]["schemas"]):
        for example in it.get("examples", []):
            check_whole(schema, it, example)


async def test_every_component_is_described(schema: Json) -> None:
    for name, it in schema["components"]["schemas"].items():
        assert it["description"], name


async def test_every_error_is_a_problem_with_its_code(schema: Json) -> None:
    for (_, _, status), response in responses(schema):
        if int(status) >= 400:
            [(media_type, content)] = response["content"].items()
            assert media_type == "application/problem+json"
            for code, example in content["examples"].items():
                assert example["value"]["status"] == int(status)
                assert example["value"]["code"] == code
                assert content["schema"] == component(EXTENDED.get(code, "Problem"))
                assert f"`{code}`" in response["description"]
                assert f"| `{code}` | {status} |" in schema["info"]["description"]


async def test_headers_are_described(schema: Json) -> None:
    found = {route: {*response.get("headers", {})} for route, response in responses(schema)}
    assert {route: found[route] for route in HEADERS} == HEADERS
    assert {route for route in found if route[2] == "401"} == {
        route for route in found if found[route] == {"WWW-Authenticate"}
    }


async def test_bodies_and_parameters_are_described(schema: Json) -> None:
    for route in (("post", "/turns"), ("post", "/turns/stream")):
        operation = operations(schema)[route]
        assert operation["requestBody"] == {"$ref": "#/components/requestBodies/NewTurn"}
        [key] = operation["parameters"]
        assert (key["name"], key["in"], key["required"]) == ("Idempotency-Key", "header", False)
        visible = {"type": "string", "pattern": r"^[\x21-\x7e]{1,255}$"}
        assert without_words(key["schema"]) == visible
    retry = operations(schema)["post", "/turns/{turn_id}/retry"]
    assert {it["name"] for it in retry["parameters"]} == {"turn_id", "Idempotency-Key"}
    assert "requestBody" not in retry
    either = read_body(schema)["schema"]["oneOf"]
    assert [it["required"] for it in either] == [["text"], ["input"]]
    assert read_body(schema)["examples"].keys() == {"text", "thread", "input"}
    parameters = operations(schema)["get", "/turns/{turn_id}/events"]["parameters"]
    assert {it["name"]: without_words(it["schema"]) for it in parameters} == {
        "turn_id": {"type": "string"},
        "Last-Event-ID": {"type": "integer", "minimum": 0},
        "after": {"type": "integer", "minimum": 0},
    }


@pytest.mark.parametrize("route", STREAMS)
async def test_a_stream_is_a_text_of_chunks(schema: Json, route: Route) -> None:
    response = operations(schema)[route]["responses"]["200"]
    [(media_type, content)] = response["content"].items()
    assert media_type == "text/event-stream"
    assert content["schema"]["type"] == "string"
    assert content["schema"]["contentSchema"] == component("Chunk")
    whole, resumed = (
        [type(chunk) for _, chunk in standing(read_events(content["examples"][name]["value"]))]
        for name in ("turn", "resumed")
    )
    assert resumed == [*whole[:4], Queued, *whole[4:]]


async def test_a_chunk_on_the_wire_is_as_described(schema: Json) -> None:
    described = schema["components"]["schemas"]["Chunk"]
    shown = [example["type"] for example in described["examples"]]
    for chunk, differs in TABLE:
        kind = component(f"{type(chunk).__name__}Chunk")
        assert kind in described["oneOf"]
        assert kind["$ref"] == described["discriminator"]["mapping"][chunks.type_of(chunk)]
        assert shown.count(chunks.type_of(chunk)) == 1
        check_whole(schema, kind, USUAL | differs)
        check_whole(schema, component("Chunk"), USUAL | differs)


async def test_a_chunk_has_all_its_parts(schema: Json) -> None:
    parts = {"seq", "turn_id", "type", "content", "completed", "metadata"}
    for name, it in schema["components"]["schemas"].items():
        if name.endswith("Chunk") and name != "Chunk":
            assert {*it["required"]} == it["properties"].keys() == parts
