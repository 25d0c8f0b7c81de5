"""Each thread once more, with its completed turns only and nothing in their way."""

from collections import defaultdict
from random import Random
from typing import Any

from tests.chaos.held import hold
from tests.chaos.history import History, Told
from tests.chaos.people import People
from tests.chaos.script import PROBE
from tests.fake_llama import FakeLlama
from tests.traceless.dialogue import comparable


class Replay:
    """Raises nothing: what differs is answered, a line for each."""

    def __init__(self, people: People, llama: FakeLlama) -> None:
        self._people = people
        self._llama = llama

    async def compare(self, history: History) -> list[str]:
        """Every thread with its like."""
        threads = defaultdict[str, list[Told]](list)
        for turn in history.turns:
            threads[turn.thread_id].append(turn)
        return [line for name, turns in threads.items() for line in await self._thread(name, turns)]

    async def _thread(self, thread_id: str, turns: list[Told]) -> list[str]:
        self._llama.calls.clear()
        faults: list[str] = []
        again = f"{thread_id}-again"
        for turn in (turn for turn in turns if turn.end == "done"):
            undisturbed = hold((await self._say(turn.text, again)).seen).answer
            if hold(turn.log).answer != undisturbed:
                faults.append(
                    f"turn {turn.number} came to {hold(turn.log).answer}, not {undisturbed}"
                )
        if await self._probe(thread_id) != await self._probe(again):
            faults.append(f"thread {thread_id} is not what its completed turns make of it")
        return faults

    async def _probe(self, thread_id: str) -> list[dict[str, Any]]:
        """All that the model is shown of a thread."""
        before = len(self._llama.calls)
        await self._say(PROBE, thread_id)
        return [comparable(call) for call in self._llama.calls[before:]]

    async def _say(self, text: str, thread_id: str) -> Told:
        turn = Told(number=0, text=text, thread_id=thread_id)
        await self._people.post(turn, key=f"{thread_id} {text}".replace(" ", "-"))
        await self._people.follow(turn, Random(turn.text))
        return turn
