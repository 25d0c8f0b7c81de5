"""Turns made at random: words, tools of some length at once, sub-agents."""

from random import Random

from tests.fake_llama import Reply
from tests.traceless.dialogue import Replies, Tool, calls, delegate, note, todo, write

BABBLE = "Go on at random."
BABBLE_WITHIN = "Help at random."

WORDS = "Words come one by one, and any of them may be the last that is heard."


def babble(random: Random) -> dict[str, Replies]:
    """What the model says in such a turn."""
    return {
        BABBLE: [*_work(random, random.randint(0, 2), delegate(BABBLE_WITHIN)), _words(random)],
        BABBLE_WITHIN: [*_work(random, random.randint(0, 2), note()), _words(random)],
    }


def _work(random: Random, rounds: int, more: Tool) -> list[Reply]:
    return [calls(*_tools(random, more)) for _ in range(rounds)]


def _tools(random: Random, more: Tool) -> list[Tool]:
    tools = [
        *((tool, {"what": str(random.randint(0, 60))}) for tool in ("rest", "persist")),
        todo(f"Do number {random.random()}."),
        write(f"{random.random()}\n"),
        more,
        more,
    ]
    return random.sample(tools, random.randint(1, 4))


def _words(random: Random) -> Reply:
    return Reply(WORDS, decode_tps=random.choice([100, 400, 4000]))
