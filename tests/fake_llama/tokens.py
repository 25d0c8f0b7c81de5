"""The fake's tokens: pieces of text that join to the text they were cut from."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.fake_llama.script import Body, Reply, Text
from tests.fake_llama.wire import random_name

END_OF_TURN = "\n"
PIECE = re.compile(r"<[/\w]+>| ?\w{1,6}| ?[^\w\s]|\s")


class Step(NamedTuple):
    """One decoded token, and the delta it sends to the client, if it sends one."""

    piece: str
    delta: Body | None = None
    whole: bool = True  # not within a character: then nothing is sent, not even the role


def tokenize(text: str) -> list[str]:
    return PIECE.findall(text)


def prompt_of(body: Body, n_tokens: int | None = None) -> list[str]:
    """The prompt of a request, padded or cut to `n_tokens` when given."""
    tools = f"<tools>{json.dumps(body['tools'])}\n" if body.get("tools") else ""
    messages = "".join(map(_render, body["messages"]))
    begun = begun_by(body)
    if begun:
        messages = messages.removesuffix(f"<assistant>{begun}{END_OF_TURN}")
    prompt = tokenize(f"{tools}{messages}<assistant>{begun}")
    if n_tokens is None:
        return prompt
    return (prompt + ["x"] * n_tokens)[:n_tokens]


def begun_by(body: Body) -> str:
    """The answer's beginning, when the last message is the assistant's: it is gone on with."""
    last: Body = body["messages"][-1] if body["messages"] else {}
    begins = last.get("role") == "assistant" and not last.get("tool_calls")
    return _content_of(last) if begins else ""


def steps_of(reply: Reply, begun: str = "") -> Iterator[Step]:
    """The tokens of a reply in order; a following prompt that quotes the reply starts with them."""
    yield from _spoken("reasoning_content", reply.reasoning)
    if reply.reasoning and (reply.content or reply.tool_calls):
        yield Step("</think>")
    for step in _spoken("content", reply.content):
        if begun and step.delta is not None:
            yield step._replace(delta={"content": begun + step.delta["content"]})
            begun = ""
        else:
            yield step
    for index, (name, arguments) in enumerate(reply.tool_calls):
        text = json.dumps(arguments) if isinstance(arguments, dict) else arguments
        yield from _tool_call_steps(index, name, text)
    if reply.finish != "length":
        yield Step(END_OF_TURN)


def token_limit(body: Body) -> int:
    """How many tokens the request allows, or -1 for no limit."""
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    return -1 if limit is None or limit < 0 else limit


def _spoken(part: str, text: Text) -> Iterator[Step]:
    """A character is held back until its last byte has come."""
    held = b""
    for piece in tokenize(text) if isinstance(text, str) else text:
        if isinstance(piece, str) and not held:
            yield Step(piece, {part: piece} if piece else None)
            continue
        held += piece if isinstance(piece, bytes) else piece.encode()
        said = held.decode(errors="replace")
        if _is_cut(held):
            yield Step(said, whole=False)
        else:
            yield Step(said, {part: said})
            held = b""


def _is_cut(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as fault:
        return fault.reason == "unexpected end of data"
    return False


def _tool_call_steps(index: int, name: str, arguments: Text) -> Iterator[Step]:
    """Nothing is sent while the name is written: the first delta brings id and name, whole."""
    yield from map(Step, tokenize(_opening(name)))
    first, *rest = _spoken("arguments", _fragments(arguments))
    function = {"name": name, **(first.delta or {"arguments": ""})}
    head = {"index": index, "id": random_name(), "type": "function", "function": function}
    yield first._replace(delta={"tool_calls": [head]})
    for step in rest:
        part = step.delta and {"tool_calls": [{"index": index, "function": step.delta}]}
        yield step._replace(delta=part)
    yield from map(Step, tokenize("}</tool_call>"))


def _fragments(arguments: Text) -> Sequence[str | bytes]:
    if isinstance(arguments, str):
        return [arguments[:1], *tokenize(arguments[1:])]
    return arguments


def _opening(name: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments":'


def _render(message: Body) -> str:
    thought = message.get("reasoning_content")
    thinking = f"{thought}</think>" if thought else ""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    calls = "".join(_opening(f["name"]) + f["arguments"] + "}</tool_call>" for f in functions)
    said = f"{thinking}{_content_of(message)}{calls}"
    return f"<{message.get('role')}>{said}{END_OF_TURN}"


def _content_of(message: Body) -> str:
    content: str | list[Body] = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
