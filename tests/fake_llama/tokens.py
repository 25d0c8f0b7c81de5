"""The fake's tokens: pieces of text that join to the text they were cut from."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.fake_llama.script import Body, Reply
from tests.fake_llama.wire import random_name

END_OF_TURN = "\n"
PIECE = re.compile(r"<[/\w]+>| ?\w{1,6}|\s|[^\w\s]")


class Step(NamedTuple):
    """One decoded token, and the delta it sends to the client, if it sends one."""

    piece: str
    delta: Body | None = None


def tokenize(text: str) -> list[str]:
    return PIECE.findall(text)


def prompt_of(body: Body, n_tokens: int | None = None) -> list[str]:
    """The prompt of a request, padded or cut to `n_tokens` when given."""
    tools = f"<tools>{json.dumps(body['tools'])}\n" if body.get("tools") else ""
    messages = "".join(map(_render, body["messages"]))
    prompt = tokenize(f"{tools}{messages}<assistant>")
    if n_tokens is None:
        return prompt
    return (prompt + ["x"] * n_tokens)[:n_tokens]


def steps_of(reply: Reply) -> Iterator[Step]:
    """The tokens of a reply in order; a following prompt that quotes the reply starts with them."""
    for piece in tokenize(reply.reasoning):
        yield Step(piece, {"reasoning_content": piece})
    if reply.reasoning:
        yield Step("</think>")
    for piece in tokenize(reply.content):
        yield Step(piece, {"content": piece})
    for index, (name, arguments) in enumerate(reply.tool_calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        yield from _tool_call_steps(index, name, text)
    if reply.finish != "length":
        yield Step(END_OF_TURN)


def token_limit(body: Body) -> int:
    """How many tokens the request allows, or -1 for no limit."""
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    return -1 if limit is None or limit < 0 else limit


def _tool_call_steps(index: int, name: str, arguments: str) -> Iterator[Step]:
    """Nothing is sent while the name is written: the first delta brings id and name, whole."""
    yield from map(Step, tokenize(_opening(name)))
    function = {"name": name, "arguments": arguments[:1]}
    head = {"index": index, "id": random_name(), "type": "function", "function": function}
    yield Step(arguments[:1], {"tool_calls": [head]})
    for piece in tokenize(arguments[1:]):
        part = {"index": index, "function": {"arguments": piece}}
        yield Step(piece, {"tool_calls": [part]})
    yield from map(Step, tokenize("}</tool_call>"))


def _opening(name: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": '


def _render(message: Body) -> str:
    content: str | list[Body] = message.get("content") or ""
    if not isinstance(content, str):
        content = "".join(part.get("text", "") for part in content)
    thought = message.get("reasoning_content")
    thinking = f"{thought}</think>" if thought else ""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    calls = "".join(_opening(f["name"]) + f["arguments"] + "}</tool_call>" for f in functions)
    return f"<{message.get('role')}>{thinking}{content}{calls}{END_OF_TURN}"
