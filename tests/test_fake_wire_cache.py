"""The fake's cache keeps of two threads in turn what llama-server was recorded to keep."""

import pytest

from tests.fake_llama import FakeLlama, Reply
from tests.llama_wire.catalogue import CACHES
from tests.llama_wire.client import connect
from tests.llama_wire.recording import Body, chat, lines_of

N_FRAME = 3
"""Tokens around the text of a first message: its role, its end, and the role that answers."""
N_SHARED = {"g_cache_ram_on": 224, "g_cache_ram_off": 224}
SAID = "r" + " r" * 3
ASKED = "q" + " q" * 10
COUNTS = ("cache_n", "prompt_n", "predicted_n")


@pytest.mark.parametrize("name", CACHES)
async def test_what_is_cached_is_as_recorded(name: str) -> None:
    lines = lines_of(name)
    threads: dict[str, list[Body]] = {"A": [], "B": []}
    async with FakeLlama(script_of(lines), cache_ram=name != "g_cache_ram_off") as llama:
        for line in lines:
            messages = threads[line["thread"]]
            messages.append(question(line, N_SHARED.get(name, 97), first=not messages))
            cache_prompt = name != "g_cache_no_cache_prompt"
            answer = await ask(llama, messages, cache_prompt=cache_prompt)
            messages.append({"role": "assistant", "content": SAID})
            assert answer["usage"] == line["usage"]
            assert [answer["timings"][n] for n in COUNTS] == [line["timings"][n] for n in COUNTS]


def script_of(lines: list[Body]) -> list[Reply]:
    """Only of the first prompt is it told what is cached: another had been there before."""
    found = lines[0]["timings"]["cache_n"]
    return [Reply(f"{SAID} r", cached=found), *[Reply(f"{SAID} r")] * (len(lines) - 1)]


def question(line: Body, n_shared: int, *, first: bool) -> Body:
    """The first message of a thread begins as that of the other, to `n_shared` tokens."""
    if not first:
        return {"role": "user", "content": ASKED}
    n_words = line["usage"]["prompt_tokens"] - N_FRAME
    words = ["s"] * (n_shared - 1) + [line["thread"].lower()] * (n_words - n_shared + 1)
    return {"role": "user", "content": " ".join(words)}


async def ask(llama: FakeLlama, messages: list[Body], *, cache_prompt: bool) -> Body:
    request = chat(messages=messages, stream=False, max_tokens=4, cache_prompt=cache_prompt)
    async with connect(llama.port) as client:
        await client.ask(request)
        return (await client.answer()).events[0]
