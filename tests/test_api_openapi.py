"""The schema says all that a client must know."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.serve_api import open_api

ROUTES = {
    ("post", "/turns"): {"200", "202", "409", "413", "422", "429", "503"},
    ("post", "/turns/stream"): {"200", "409", "410", "413", "422", "429", "503"},
    ("get", "/turns/{turn_id}"): {"200", "404", "503"},
    ("get", "/turns/{turn_id}/events"): {"200", "204", "404", "410", "503"},
    ("post", "/turns/{turn_id}/cancel"): {"200", "202", "404", "501", "503"},
    ("get", "/queue"): {"200", "503"},
    ("get", "/status"): {"200"},
    ("get", "/health/live"): {"200"},
    ("get", "/health/ready"): {"200", "503"},
}


@pytest.fixture
async def schema(redis_url: str) -> AsyncGenerator[dict[str, Any]]:
    async with open_api(redis_url) as api:
        yield await read_schema(api)


async def read_schema(api: httpx.AsyncClient) -> dict[str, Any]:
    answer = await api.get("/schema")
    assert answer.headers["content-type"] == "application/json"
    assert (await api.get("/schema/openapi.json")).json() == answer.json()
    return answer.json()


def operations(schema: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method, path): operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }


async def test_every_route_and_answer_is_there(schema: dict[str, Any]) -> None:
    found = operations(schema)
    assert found.keys() == ROUTES.keys()
    for route, statuses in ROUTES.items():
        assert statuses <= found[route]["responses"].keys(), route


async def test_every_error_is_a_problem_with_an_example(schema: dict[str, Any]) -> None:
    for route, operation in operations(schema).items():
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert response["content"].keys() == {"application/problem+json"}, route
                content = response["content"]["application/problem+json"]
                assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
                for example in content["examples"].values():
                    assert example["value"]["status"] == int(status)


@pytest.mark.parametrize("route", [("post", "/turns/stream"), ("get", "/turns/{turn_id}/events")])
async def test_streams_are_streams(schema: dict[str, Any], route: tuple[str, str]) -> None:
    response = operations(schema)[route]["responses"]["200"]
    [(media_type, content)] = response["content"].items()
    assert media_type == "text/event-stream"
    assert "retry: 2000\nid: 1\n" in str(next(iter(content["examples"].values()))["value"])


async def test_bodies_and_headers_are_described(schema: dict[str, Any]) -> None:
    post = operations(schema)["post", "/turns"]
    body = post["requestBody"]["content"]["application/json"]
    assert body["schema"]["properties"].keys() == {"text", "input", "thread_id", "agent"}
    assert [parameter["name"] for parameter in post["parameters"]] == ["Idempotency-Key"]
    assert "Location" in post["responses"]["202"]["headers"]
