"""A client that leaves the fake leaves the slot as it was recorded to leave llama-server's."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.fake_llama import FakeLlama, Reply
from tests.llama_wire.catalogue import IN_DECODE, IN_FIRST_BATCH, IN_PREFILL
from tests.llama_wire.client import connect
from tests.llama_wire.likeness import likeness
from tests.llama_wire.observation import Observation, observe, recorded_observations
from tests.llama_wire.recording import Body, Exchange, chat, exchanges_of, heard, lines_of
from tests.llama_wire.script import reply_for

N_BATCH = 256


async def test_the_slot_in_decode_is_as_recorded() -> None:
    (exchange,) = exchanges_of(IN_DECODE)
    *busy, idle = recorded_observations(IN_DECODE)
    for observation in busy:
        await see_in_decode(exchange, observation["n_decoded"], observation)
    reply = replace(reply_for(exchange), hang_after=len(exchange.answer.chunks))
    async with FakeLlama([reply]) as llama:
        assert await leave(llama, exchange) == likeness(exchange.answer)
        assert await observe(llama.port) == idle


async def see_in_decode(exchange: Exchange, n_decoded: int, expected: Observation) -> None:
    reply = replace(reply_for(exchange), hang_after=n_decoded)
    async with FakeLlama([reply]) as llama, connect(llama.port) as client:
        await client.ask(exchange.request)
        await client.beginning(n_decoded)
        assert await observe(llama.port) == expected


async def test_the_slot_in_prefill_is_as_recorded() -> None:
    (exchange,) = exchanges_of(IN_PREFILL)
    *busy, _, idle = recorded_observations(IN_PREFILL)
    for n_batches, observation in enumerate(busy):
        reply = replace(reply_for(exchange), stall_after=n_batches)
        async with FakeLlama([reply], n_batch=N_BATCH) as llama, connect(llama.port) as client:
            await client.ask(exchange.request)
            await client.beginning(n_batches + 1)
            assert await observe(llama.port) == observation
    reply = replace(reply_for(exchange), stall_after=len(busy) - 1)
    async with FakeLlama([reply], n_batch=N_BATCH) as llama:
        assert await leave(llama, exchange) == likeness(exchange.answer)
        assert await observe(llama.port) == a_batch_less(idle)


def a_batch_less(observation: Observation) -> Observation:
    """The fake notices at once, llama-server a batch later."""
    late = {"n_prompt_tokens": N_BATCH, "prompt_tokens_total": N_BATCH, "n_decode_total": 1}
    return observation | {name: observation[name] - more for name, more in late.items()}


@pytest.mark.parametrize("name", IN_FIRST_BATCH)
async def test_a_client_that_leaves_in_the_first_batch_is_as_recorded(name: str) -> None:
    """Pinged or not: the batch in the slot stays there."""
    lines = lines_of(name)
    answer = heard("".join(line["raw"] for line in lines if "raw" in line))
    busy, idle = distinct(line["poll"] for line in lines if "poll" in line)
    exchange = Exchange(chat(return_progress=len(answer.chunks) > 0), answer)
    reply = Reply(prompt_tokens=2443, cached=10, stall_after=0)
    async with FakeLlama([reply], n_batch=N_BATCH) as llama, connect(llama.port) as client:
        await client.ask(exchange.request)
        await client.beginning(0)
        assert busy.items() <= (await observe(llama.port)).items()
    async with FakeLlama([reply], n_batch=N_BATCH, sse_ping_interval=0.01) as llama:
        assert await leave(llama, exchange) == likeness(answer)
        assert idle.items() <= (await observe(llama.port)).items()


def distinct(polls: Iterable[Body]) -> list[Body]:
    """Without the ones that say the same again, and the number of the task."""
    told = [{key: value for key, value in poll.items() if key != "id_task"} for poll in polls]
    return [poll for i, poll in enumerate(told) if poll not in told[:i]]


async def leave(llama: FakeLlama, exchange: Exchange) -> object:
    """Reads as much as was recorded, then leaves; what was read."""
    async with connect(llama.port) as client:
        await client.ask(exchange.request)
        begun = await client.beginning(len(exchange.answer.chunks))
    await llama.wait_for(lambda: llama.calls[0].state == "cancelled")
    return likeness(begun)
