"""What a chat request is refused for, with the status and error llama-server has for it."""

import json

from tests.fake_llama.script import Body


class Refusal(Exception):
    """The request is answered with an error in place of a completion."""

    def __init__(self, status: int, error: Body) -> None:
        super().__init__(error["message"])
        self.status = status
        self.error = error


def parse(raw: bytes) -> Body:
    """Reads a request body; raises Refusal if it is not JSON."""
    try:
        return json.loads(raw)
    except ValueError as fault:
        raise _invalid(f"[json.exception.parse_error.101] {fault}") from fault


def check(body: Body) -> None:
    """Raises Refusal for the first fault of a chat request."""
    if "messages" not in body:
        raise _invalid("'messages' is required")
    _check_fields(body)
    _check_tools(body)
    _check_parts(body["messages"])
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    for call in calls:
        _check_arguments(call["function"]["arguments"])
    _check_pairs(body["messages"])


def check_context(n_prompt: int, n_ctx: int) -> None:
    if n_prompt >= n_ctx:
        message = (
            f"request ({n_prompt} tokens) exceeds the available context size"
            f" ({n_ctx} tokens), try increasing it"
        )
        counts = {"n_prompt_tokens": n_prompt, "n_ctx": n_ctx}
        kind = "exceed_context_size_error"
        raise Refusal(400, {"message": message, "type": kind, **counts})


def _invalid(message: str) -> Refusal:
    return Refusal(400, {"message": message, "type": "invalid_request_error"})


def _server_error(message: str) -> Refusal:
    return Refusal(500, {"message": message, "type": "server_error"})


def _check_fields(body: Body) -> None:
    """Of the sampling fields only the one whose refusal was recorded."""
    temperature = body.get("temperature")
    if isinstance(temperature, str):
        fault = "[json.exception.type_error.302] type must be number, but is string"
        raise _invalid(f"Field 'temperature': {fault}")
    n_answers = body.get("n", 1)
    if n_answers != 1:
        raise _invalid(f"Field 'n': Value must be between 1 <= value <= 1, but got {n_answers}")


def _check_parts(messages: list[Body]) -> None:
    contents: list[str | list[Body] | None] = [message.get("content") for message in messages]
    parts = [part for each in contents if isinstance(each, list) for part in each]
    if any(part.get("type") == "image_url" for part in parts):
        hint = "hint: if this is unexpected, you may need to provide the mmproj"
        raise _server_error(f"image input is not supported - {hint}")


def _check_tools(body: Body) -> None:
    wanted = body.get("tool_choice", "auto")
    if isinstance(wanted, str) and wanted not in ("auto", "none", "required"):
        raise _invalid(f"Invalid tool_choice: {wanted}")
    for tool in body.get("tools") or ():
        if "name" not in tool.get("function", {}):
            fault = "[json.exception.out_of_range.403] key 'name' not found"
            tools = json.dumps(body["tools"], indent=2)
            raise _server_error(f"Failed to parse tools: {fault}; tools = {tools}")


def _check_arguments(arguments: str) -> None:
    try:
        json.loads(arguments)
    except ValueError as fault:
        message = (
            f"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] {fault}"
        )
        raise _server_error(message) from fault


def _check_pairs(messages: list[Body]) -> None:
    """The fake's own rule: the tool messages of a call come before any other message."""
    unanswered: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            _answer(unanswered, message["tool_call_id"])
            continue
        _check_answered(unanswered)
        unanswered = {call["id"] for call in message.get("tool_calls") or ()}
    _check_answered(unanswered)


def _answer(unanswered: set[str], call_id: str) -> None:
    if call_id not in unanswered:
        raise _invalid(f"tool message without its tool call: {call_id}")
    unanswered.remove(call_id)


def _check_answered(unanswered: set[str]) -> None:
    if unanswered:
        names = ", ".join(sorted(unanswered))
        raise _invalid(f"tool call without its tool message: {names}")
