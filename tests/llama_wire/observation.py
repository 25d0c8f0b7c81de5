"""What /slots and /metrics told while a chat went on, recorded and now."""

import json
import re
from typing import Any

from tests.llama_wire.client import connect
from tests.llama_wire.recording import Body, Request, lines_of

COUNTERS = ("prompt_tokens_total", "tokens_predicted_total", "n_decode_total")
GAUGES = ("requests_processing", "requests_deferred")
SLOT = ("is_processing", "n_prompt_tokens", "n_prompt_tokens_processed", "n_prompt_tokens_cache")

Observation = dict[str, Any]


def recorded_observations(name: str) -> list[Observation]:
    """What was seen once the chat had begun, each state once; counters since the first look."""
    before, *polls = [line for line in lines_of(name) if "poll" in line]
    seen = [_observed(_slot(poll), poll["metrics"], before["metrics"]) for poll in polls]
    started = [each for each, poll in zip(seen, polls, strict=True) if _is_new(poll, before)]
    return [each for i, each in enumerate(started) if each not in started[:i]]


async def observe(port: int) -> Observation:
    """The same, of a fake that has served nothing before."""
    slot: Body = json.loads(await _get(port, "/slots"))[0]
    metrics = dict(re.findall(r"(?m)^llamacpp:(\w+) (\S+)$", await _get(port, "/metrics")))
    (next_token,) = slot["next_token"]
    return _observed(slot | next_token, metrics, {})


def _slot(poll: Body) -> Body:
    return poll | {"n_decoded": poll["n_decoded"][0], "n_remain": poll["n_remain"][0]}


def _is_new(poll: Body, before: Body) -> bool:
    return poll["id_task"] != before["id_task"]


def _observed(slot: Body, metrics: Body, before: Body) -> Observation:
    """While a token is decoded the counter of decodes may be read a token later than the slot."""
    counted = {name: int(metrics[name]) - int(before.get(name, 0)) for name in COUNTERS}
    if slot["n_decoded"] > 0:
        del counted["n_decode_total"]
    told = {name: slot[name] for name in (*SLOT, "n_decoded", "n_remain")}
    return told | counted | {name: int(metrics[name]) for name in GAUGES}


async def _get(port: int, path: str) -> str:
    async with connect(port) as client:
        await client.ask(Request("GET", path))
        return (await client.answer()).chunks[0]
