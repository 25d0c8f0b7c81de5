"""Clients wait for the fake's one slot as they were recorded to wait for llama-server's."""

import asyncio
from dataclasses import replace
from itertools import pairwise

from tests.fake_llama import FakeLlama
from tests.llama_wire.catalogue import QUEUE
from tests.llama_wire.client import Client, connect
from tests.llama_wire.likeness import likeness
from tests.llama_wire.observation import Observation, observe
from tests.llama_wire.recording import Answer, Exchange, Request, chat, heard, lines_of
from tests.llama_wire.script import reply_for

USAGE = {"include_usage": True}
REQUESTS = {
    "A": chat("a", return_progress=True),
    "B": chat("b", return_progress=True, stream_options=USAGE, max_tokens=4),
    "C_disconnects": chat("c", return_progress=True),
    "D_noprogress": chat("d", stream_options=USAGE, max_tokens=3),
}
"""The recording holds the answers only, and of A's the beginning and the end."""
RUN = ("A", "B", "D_noprogress")
N_SEEN = 2
"""Tokens that A had when the others waited."""


async def test_the_queue_for_the_slot_is_as_recorded() -> None:
    recorded = {who: recorded_answer(who) for who in RUN}
    first, *others = [reply_for(Exchange(REQUESTS[who], recorded[who])) for who in RUN]
    release = asyncio.Event()
    first = replace(first, hang_after=N_SEEN, release=release)
    async with FakeLlama([first, *others]) as llama:
        answers = await run_in_turn(llama, release)
    for who, answer in answers.items():
        assert likeness(beginning(answer, recorded[who])) == likeness(recorded[who])
    ran = [call for call in llama.calls if call.state == "done"]
    assert len(ran) == len(RUN)
    for call, following in pairwise(ran):
        assert (call.ended_at or 0) <= (following.started_at or 0)


async def run_in_turn(llama: FakeLlama, release: asyncio.Event) -> dict[str, Answer]:
    """The answers in the order in which they ended."""
    port, answers = llama.port, dict[str, Answer]()

    async def read(who: str, client: Client) -> None:
        answers[who] = await client.answer()

    async with connect(port) as a, connect(port) as b, connect(port) as d, asyncio.TaskGroup() as g:
        async with connect(port) as c:
            for client, request in zip((a, b, c, d), REQUESTS.values(), strict=True):
                await join(llama, client, request)
            for who, client in zip(RUN, (a, b, d), strict=True):
                g.create_task(read(who, client))
            await llama.wait_for(lambda: llama.calls[0].n_decoded == N_SEEN)
            assert recorded_observation().items() <= (await observe(port)).items()
        await llama.wait_for(lambda: llama.calls[2].state == "cancelled")
        assert (b.head, d.head) == ("", ""), "no head before the slot begins"
        release.set()
    assert tuple(answers) == RUN
    return answers


async def join(llama: FakeLlama, client: Client, request: Request) -> None:
    n_before = len(llama.calls)
    await client.ask(request)
    await llama.wait_for(lambda: len(llama.calls) > n_before)


def recorded_answer(who: str) -> Answer:
    lines = [line for line in lines_of(QUEUE) if line.get("who") == who]
    answer = heard("".join(line["raw"] for line in lines if "raw" in line))
    told = [chunk for chunk in answer.chunks if "[DONE]" not in chunk]
    return Answer(answer.head, told, "end" if "ended" in lines[-1] else "eof")


def beginning(answer: Answer, recorded: Answer) -> Answer:
    return answer._replace(chunks=answer.chunks[: len(recorded.chunks)])


def recorded_observation() -> Observation:
    """The slot and the counters when A had N_SEEN tokens, since the first look in its prefill."""
    before, *polls = [line for line in lines_of(QUEUE) if "metrics" in line]
    n_prompt = before["slots"][0]["n_prompt_tokens"]
    (seen,) = [p for p in polls if p["slots"][0]["n_prompt_tokens"] == n_prompt + N_SEEN]
    counted = {
        name: int(seen["metrics"][name]) - int(before["metrics"][name])
        for name in ("prompt_tokens_total", "tokens_predicted_total")
    }
    (slot,) = seen["slots"]
    requests = {name: int(n) for name, n in seen["metrics"].items() if "requests" in name}
    return {name: slot[name] for name in ("is_processing", "n_prompt_tokens")} | counted | requests
