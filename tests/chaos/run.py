"""A chaos run: turns are posted, cancelled and followed while all around them dies."""

import asyncio
import sqlite3
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from shared import keys
from tests.chaos.checks import check
from tests.chaos.held import count_void
from tests.chaos.history import History, Told
from tests.chaos.parts import Parts
from tests.chaos.people import People, gather_people
from tests.chaos.replay import Replay
from tests.chaos.script import Script
from tests.chaos.strikes import Strikes
from tests.fake_llama import FakeLlama
from tests.redis_seen import everlasting, looking
from tests.until import until

MOST_OPEN = 5
"""Turns that have not ended, when another is posted."""

TURNS_OF_A_THREAD = 8
"""Enough for threads that remember, too few for their length to matter."""

TURNS_OF_A_STRIKE = 2
CANCELS = 0.25
MOST_LATER_S = 0.6
PATIENCE_S = 90.0
"""So long after the last strike or post every turn has ended."""

STAYS = {keys.known()}
"""What belongs to the lane, not to a turn or a thread."""

OPEN_TABLES = ("open_turns", "fenced_checkpoints", "fenced_writes", "outbox")


@dataclass
class Result:
    """`strikes` by kind, `ends` by status; `void`: chunks that a rewind took back; `faults`: what
    was wrong, none if all is well.
    """

    turns: int
    seed: int
    strikes: Counter[str] = field(default_factory=Counter[str])
    ends: Counter[str] = field(default_factory=Counter[str])
    void: int = 0
    faults: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.turns} turns, seed {self.seed}: {_listed(self.strikes)};"
            f" {_listed(self.ends)}; {self.void} chunks taken back; {self.seconds:.0f} s"
        )


class Run:
    """One run on running parts."""

    def __init__(
        self, parts: Parts, people: People, llama: FakeLlama, script: Script, seed: int
    ) -> None:
        self.history = History()
        self.strikes = Strikes(parts, Random(f"strikes {seed}"))
        self._parts = parts
        self._people = people
        self._llama = llama
        self._script = script
        self._seed = seed

    async def go(self, turns: int) -> None:
        """Posts them all, strikes on the way, and returns once all have ended."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(turns):
                await until(self._has_room, PATIENCE_S)
                await self._begin(number, tasks)
            await until(lambda: not self._open, PATIENCE_S)

    async def _begin(self, number: int, tasks: asyncio.TaskGroup) -> None:
        random = Random(f"turn {self._seed} {number}")
        thread_id = f"thread-{number // (TURNS_OF_A_THREAD * 3)}-{number % 3}"
        turn = Told(number, self._script.learn_turn(number), thread_id)
        self._llama.calls[:] = [call for call in self._llama.calls if not call.ended_at]
        await self._people.post(turn, key=f"{self._seed}-{number}")
        self.history.turns.append(turn)
        tasks.create_task(self._people.follow(turn, random))
        if random.random() < CANCELS:
            tasks.create_task(self._cancel(turn, random.uniform(0, MOST_LATER_S)))
        if number % TURNS_OF_A_STRIKE == 0:
            tasks.create_task(self.strikes.strike())

    async def _cancel(self, turn: Told, later_s: float) -> None:
        await asyncio.sleep(later_s)
        await self._people.cancel(turn)

    @property
    def _open(self) -> list[Told]:
        return [turn for turn in self.history.turns if not turn.has_ended]

    def tell_open(self) -> list[str]:
        """The turns that have not ended."""
        return [f"turn {turn.number} ({turn.turn_id}) is open" for turn in self._open]

    def _has_room(self) -> bool:
        return len(self._open) < MOST_OPEN

    def _is_settled(self) -> bool:
        with looking(self._parts.redis_url) as redis:
            self.history.everlasting = everlasting(redis) - STAYS
        self.history.left_open = count_rows(self._parts.database)
        return not self.history.everlasting and not any(self.history.left_open.values())

    async def look(self) -> list[str]:
        """All that is wrong, now that it is over."""
        history = self.history
        for turn in history.turns:
            await self._people.read(turn)
        history.asked = self._script.asked
        history.most_at_once = self._llama.max_at_once
        history.kills = self.strikes.counts["worker killed"]
        # The ledger may still have to hear of a turn that was cancelled in the queue.
        with suppress(TimeoutError):
            await until(self._is_settled)
        return check(history) + await Replay(self._people, self._llama).compare(history)


def count_rows(database: Path) -> dict[str, int]:
    """Rows by table, of those that only turns under way have."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        counts = [connection.execute(f"SELECT count(*) FROM {table}") for table in OPEN_TABLES]
        return dict(zip(OPEN_TABLES, (count.fetchone()[0] for count in counts), strict=True))


async def run_chaos(folder: Path, turns: int, seed: int) -> Result:
    """The whole run, on a service of its own in an empty folder."""
    began, script = time.monotonic(), Script(seed)
    result = Result(turns, seed)
    async with FakeLlama(script, n_ctx=100_000) as llama:
        parts = Parts(folder, llama.base_url)
        async with parts.running(), gather_people(parts.urls, Random(f"people {seed}")) as people:
            run = Run(parts, people, llama, script, seed)
            try:
                await run.go(turns)
                result.faults = await run.look()
            except* (AssertionError, TimeoutError) as errors:
                result.faults = [*run.tell_open(), *map(str, errors.exceptions), *parts.logs()]
    result.strikes, result.ends = run.strikes.counts, Counter(run.history.ends)
    result.void = sum(count_void(turn.log) for turn in run.history.turns)
    result.seconds = time.monotonic() - began
    return result


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{times} {what}" for what, times in sorted(counts.items()))
