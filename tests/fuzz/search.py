"""One random cancel after another, and what must hold after each."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from unittest.mock import patch

from shared.chunks import Cancelled, Chunk, Done, type_of
from tests.fake_llama import Reply
from tests.fuzz.babble import BABBLE, babble
from tests.fuzz.clock import Clock, set_clock
from tests.fuzz.moments import KINDS, pass_until
from tests.fuzz.puts import Puts, watch_puts
from tests.traceless.rows import changes
from tests.traceless.stage import Stage, open_stage
from tests.traceless.turn import Turn
from worker import run

ANSWER = "Answer."

IMPATIENT_S = 0.001
"""So soon a turn that is slow to end is left behind."""

CANCELS_OF_A_THREAD = 8
"""Enough for threads that are sealed, too few for their length to matter."""


class Search:
    """`ends`: how many turns ended how, by the kind of moment."""

    def __init__(self, stage: Stage, puts: Puts, clock: Clock, seed: int) -> None:
        self.ends = Counter[str]()
        self._stage = stage
        self._puts = puts
        self._clock = clock
        self._seed = seed
        self._said = defaultdict[str, list[str]](list)
        self._length_s = 0.0

    async def run(self, cancels: int) -> None:
        """Raises AssertionError with the number of the cancel that has left a trace."""
        await self._measure()
        for number in range(cancels):
            try:
                await self._cancel_one(number)
            except Exception as error:
                again = f"uv run python -m tests.fuzz.cancels {number + 1} {self._seed}"
                raise AssertionError(f"{again}\ncancel {number}: {error}") from error

    async def _measure(self) -> None:
        """How long a turn with slow puts takes."""
        random = Random(self._seed)
        self._stage.dialogue.learn(babble(random))
        self._puts.slow(random)
        began = time.monotonic()
        await self._stage.say(BABBLE, "measured")
        self._length_s = time.monotonic() - began
        self._puts.hurry()

    async def _cancel_one(self, number: int) -> None:
        random = Random(f"{self._seed} {number}")
        thread_id = f"thread-{number // CANCELS_OF_A_THREAD}"
        self._stage.dialogue.learn(babble(random))
        self._clock.step(random)
        if random.random() < 0.7:
            self._puts.slow(random)
        with patch.object(run, "CANCEL_S", random.choice([run.CANCEL_S, IMPATIENT_S])):
            kind, turn, end = await self._cancel(random, thread_id)
        self.ends[f"{kind}, {type_of(end)}"] += 1
        if isinstance(end, Done):
            self._said[thread_id].append(BABBLE)
        told = turn.log
        if random.random() < 0.7:
            await self._check_rest(turn, end)
        await self._check_answer(thread_id, random)
        await self._settle(turn)
        assert turn.log == told, "it went on after its end"

    async def _cancel(self, random: Random, thread_id: str) -> tuple[str, Turn, Chunk]:
        """A turn cancelled once or twice; checks that nothing of it is left if that was in time."""
        turn = await self._stage.begin(BABBLE, thread_id)
        kind = random.choice(KINDS)
        await pass_until(kind, random, turn, self._puts, self._length_s)
        times = random.randint(1, 2)
        await asyncio.gather(*(self._post(turn, random.uniform(0, 0.02)) for _ in range(times)))
        *_, end = await turn.end()
        assert isinstance(end, Cancelled | Done), end
        if isinstance(end, Cancelled):
            assert not (left := changes(turn.rows_before, turn.rows)), f"left behind: {left}"
        return kind, turn, end

    async def _check_rest(self, turn: Turn, end: Chunk) -> None:
        """What the turn has begun and left is over, and nothing came of it."""
        asked = len(turn.calls)
        await self._settle(turn)
        assert len(turn.calls) == asked, "it asked the model after its end"
        if isinstance(end, Cancelled):
            assert not (left := changes(turn.rows_before, turn.rows)), f"came later: {left}"

    async def _settle(self, turn: Turn) -> None:
        self._puts.hurry()
        await turn.settle()

    async def _post(self, turn: Turn, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        answer = await self._stage.view.service.client.post(f"/turns/{turn.turn_id}/cancel")
        assert answer.status_code in {200, 202}, answer.text

    async def _check_answer(self, thread_id: str, random: Random) -> None:
        """The thread still takes a turn, and knows what was said in it."""
        self._clock.step(random)
        said = self._said[thread_id]
        said.append(ANSWER)
        [body] = await self._stage.say(ANSWER, thread_id)
        asked = [each["content"] for each in body["messages"] if each["role"] == "user"]
        assert asked == said, f"the model was asked {asked} in place of {said}"


@asynccontextmanager
async def open_search(redis_url: str, folder: Path, seed: int) -> AsyncGenerator[Search]:
    """A search on a service of its own."""
    with watch_puts() as puts, set_clock() as clock:
        async with open_stage(redis_url, folder, lambda _: {ANSWER: [Reply("Yes.")]}) as stage:
            yield Search(stage, puts, clock, seed)
