"""The script that makes the fake say what was recorded."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

from tests.fake_llama import Reply
from tests.fake_llama.tokens import begun_by, steps_of
from tests.llama_wire.client import PING
from tests.llama_wire.recording import Answer, Body, Exchange


def reply_for(exchange: Exchange) -> Reply:
    """What the model said; refusals, the cut at a limit and all sums are left to the fake."""
    request, answer = exchange
    if answer.refused or not answer.events or "choices" not in answer.events[0]:
        return Reply(prompt_tokens=_refused_tokens(answer))
    reply = _padded(_spoken(answer, begun_by(json.loads(request.body))), answer)
    n_prompt, n_cached = _prompt(answer)
    return replace(reply, prompt_tokens=n_prompt, cached=n_cached)


def interrupted(reply: Reply, answer: Answer) -> Reply:
    """With a wait for a ping where one came, or the end where the answer broke off."""
    if answer.refused:
        return reply
    n_deltas = sum(1 for _ in _deltas(answer))
    if answer.end == "eof":
        return replace(reply, eof_after=n_deltas)
    if PING not in answer.chunks:
        return reply
    before = answer._replace(chunks=answer.chunks[: answer.chunks.index(PING)])
    n_before, pinged = sum(1 for _ in _deltas(before)), asyncio.Event()
    if n_before == 0:
        return replace(reply, gate=pinged)
    return replace(reply, hang_after=n_before, release=pinged)


def _refused_tokens(answer: Answer) -> int | None:
    """The prompt that was too long has its length in the refusal."""
    errors = (event.get("error", {}) for event in answer.events)
    return next((error.get("n_prompt_tokens") for error in errors), None)


def _spoken(answer: Answer, begun: str) -> Reply:
    """Every delta is a token, or as many as its timings tell."""
    content, reasoning = list[str | bytes](), list[str | bytes]()
    calls: list[tuple[str, list[str | bytes]]] = []
    for delta, n_tokens in _deltas(answer):
        if said := delta.get("content"):
            content += _pieces(said.removeprefix(begun), n_tokens)
        if thought := delta.get("reasoning_content"):
            reasoning += _pieces(thought, n_tokens)
        for function in (call["function"] for call in delta.get("tool_calls", ())):
            if "name" in function:
                calls.append((function["name"], []))
            calls[-1][1].append(function["arguments"])
    if _begins_silently(answer) and not calls:
        (reasoning or content).insert(0, "")
    return Reply(content, reasoning, calls)


def _deltas(answer: Answer) -> Iterator[tuple[Body, int]]:
    """What was said, with the number of tokens it took; a whole message counts as one."""
    n_told = 0
    for event in answer.events:
        for choice in event["choices"]:
            delta = choice.get("delta", {})
            if "message" in choice:
                yield choice["message"], 1
            elif delta and "role" not in delta:
                n_tokens = event.get("timings", {}).get("predicted_n", n_told + 1)
                yield delta, n_tokens - n_told
                n_told = n_tokens


def _pieces(text: str, n_tokens: int) -> list[str | bytes]:
    """A character of several tokens is cut into their bytes."""
    if text.startswith("\ufffd"):
        return [b"\xf0", text[1:]]
    if n_tokens == 1:
        return [text]
    data = text.encode()
    first = len(data) - n_tokens + 1
    return [data[:first], *(data[i : i + 1] for i in range(first, len(data)))]


def _begins_silently(answer: Answer) -> bool:
    """The role that came alone came with a token without text."""
    roles = [chunk for chunk in answer.chunks if '"role"' in chunk and "_progress" not in chunk]
    return any(chunk.count("data: ") == 1 for chunk in roles)


def _padded(reply: Reply, answer: Answer) -> Reply:
    """With tokens without text to the recorded number; with one too many if a limit cut it."""
    reason = next((r for r in map(_finish_reason, reversed(answer.events)) if r), None)
    n_told = answer.events[-1].get("timings", {}).get("predicted_n", 0)
    n_missing = n_told + 1 if reason == "length" else n_told - sum(1 for _ in steps_of(reply))
    padding = [""] * n_missing
    if reply.tool_calls:
        *others, (name, fragments) = reply.tool_calls
        return replace(reply, tool_calls=[*others, (name, [*fragments, *padding])])
    if reply.content:
        return replace(reply, content=[*reply.content, *padding])
    return replace(reply, reasoning=[*reply.reasoning, *padding])


def _finish_reason(event: Body) -> str | None:
    return event["choices"][0]["finish_reason"] if event["choices"] else None


def _prompt(answer: Answer) -> tuple[int | None, int | None]:
    """Its length, and how much of it was cached."""
    for event in reversed(answer.events):
        if timings := event.get("timings"):
            return timings["cache_n"] + timings["prompt_n"], timings["cache_n"]
        if progress := event.get("prompt_progress"):
            return progress["total"], progress["cache"]
    return None, None
