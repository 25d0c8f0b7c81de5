"""The fake refuses what llama-server refuses, and dangling tool calls besides."""

import pytest

from tests.fake_llama import FakeLlama, Reply
from tests.llama_client import Body, chat, client_of, post, tool_call


async def test_a_prompt_beyond_the_context_is_refused_before_any_stream() -> None:
    async with FakeLlama([Reply(prompt_tokens=300)], n_ctx=256) as llama:
        response = await post(llama, chat(stream=True))
    assert response.status_code == 400
    assert response.headers["connection"] == "close"
    assert response.json() == {
        "error": {
            "code": 400,
            "message": "request (300 tokens) exceeds the available context size (256 tokens),"
            " try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 300,
            "n_ctx": 256,
        }
    }
    assert llama.calls[0].state == "error"


USER: Body = {"role": "user", "content": "hi"}
ASKED: Body = {"role": "assistant", "content": None, "tool_calls": [tool_call("1")]}
TOLD: Body = {"role": "tool", "tool_call_id": "1", "content": "bin"}
BROKEN: Body = {"role": "assistant", "content": None, "tool_calls": [tool_call("1", "{not json")]}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (chat(USER, ASKED), 400, "tool call without its tool message: 1"),
        (chat(USER, ASKED, USER, TOLD), 400, "tool call without its tool message: 1"),
        (chat(USER, TOLD), 400, "tool message without its tool call: 1"),
        (chat(USER, ASKED, TOLD, TOLD), 400, "tool message without its tool call: 1"),
        (chat(USER, BROKEN, TOLD), 500, "Failed to parse tool call arguments as JSON"),
        (chat(tool_choice="ls"), 400, "Invalid tool_choice: ls"),
        (chat(tools=[{"type": "function", "function": {}}]), 500, "Failed to parse tools"),
        ({"stream": True}, 400, "'messages' is required"),
    ],
)
async def test_a_faulty_request_is_refused(body: Body, code: int, message: str) -> None:
    async with FakeLlama([Reply("kept")]) as llama:
        response = await post(llama, body)
        assert response.status_code == llama.calls[0].status == code
        assert response.json()["error"]["message"].startswith(message)
        kind = "server_error" if code == 500 else "invalid_request_error"
        assert response.json()["error"]["type"] == kind
        whole = await post(llama, chat(USER, ASKED, TOLD))
        assert whole.json()["choices"][0]["message"]["content"] == "kept"


async def test_a_body_that_is_not_json_is_refused() -> None:
    async with FakeLlama() as llama, client_of(llama) as client:
        response = await client.post("/v1/chat/completions", content=b'{"messages": [')
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
