"""What Redis must know before turns are taken: after a worker that died, and a Redis that forgot.

Turns that are not over keep their places: the next claim goes on with them, or undoes them.
"""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec
from msgspec.structs import replace

from shared.claims import Claims
from shared.errors import Fenced
from shared.lane import Lane
from shared.record import ENDED, TurnRecord
from worker.ending import Ending
from worker.errors import DatabaseUnusable
from worker.fence import Fence
from worker.insist import insist
from worker.memory import Memory
from worker.settlement import lift
from worker.telling import make_good, tell_later

Running = Callable[[], str]

log = logging.getLogger(__name__)


class Recovery:
    """Puts Redis and the database in order; `lane` and `claims` speak to Redis."""

    def __init__(self, lane: Lane, claims: Claims, memory: Memory) -> None:
        self._lane = lane
        self._claims = claims
        self._memory = memory

    async def start(self) -> None:
        """Before the first turn is taken; raises DatabaseUnusable."""
        try:
            await self._lift_failed()
            await self._tell_all(_nobody, starts=True)
            if left := await insist(self._lane.left_running):
                await insist(lambda: self._lane.put_back(left))
        except (sqlite3.Error, TimeoutError) as error:
            raise DatabaseUnusable(f"CHECKPOINT_DB cannot be put in order: {error}") from error

    async def refresh(self, running: Running) -> bool:
        """Tells Redis all again if it may have lost something, and answers whether it may.

        `running`: answers the turn that has a runner, or "". May raise RedisAway, sqlite3.Error and
        TimeoutError.
        """
        mark = await self._lane.read_mark()
        if mark and mark.told:
            return False
        log.warning("Redis was started anew or emptied: it is told what the database knows.")
        await self._tell_all(running)
        log.info("Redis has been told.")
        return True

    async def _tell_all(self, running: Running, *, starts: bool = False) -> None:
        told = False
        while not told:
            mark = await insist(self._lane.begin_telling)
            await self._tell_turns(running, mark, starts=starts)
            agents = await self._memory.agents_of_threads()
            await insist(partial(self._lane.remember_agents, agents))
            told = await insist(partial(self._lane.end_telling, mark))
            self._claims.mark = mark

    async def _tell_turns(self, running: Running, mark: str, *, starts: bool) -> None:
        for ending in await self._memory.untold():
            if ending.turn.turn_id != running():  # else its runner tells it
                await self._tell(ending)
        for fence in await self._memory.fences():
            if fence.state == "running":
                await self._keep_going(fence, running, mark, starts=starts)
        fences = await self._memory.fences()
        failed = [fence.thread_id for fence in fences if fence.state == "failed"]
        # While a turn runs, its thread may have been given up since the fences were read.
        await insist(lambda: self._lane.quarantine(failed, only=starts))

    async def _tell(self, ending: Ending) -> None:
        try:
            await tell_later(self._claims, self._memory, ending)
        except Fenced:
            log.warning("The end of turn %s could not be told.", ending.turn.turn_id)

    async def _keep_going(self, fence: Fence, running: Running, mark: str, *, starts: bool) -> None:
        """A turn that is not over gets its record and its place again, if it has lost them."""
        turn, status = _read_record(fence), await insist(lambda: self._claims.status(fence.turn_id))
        if turn is None or status in ENDED:
            if starts:  # later it may be just about to end
                await lift(self._memory, fence)
            return
        if fence.turn_id == running():
            await insist(lambda: self._claims.revive(turn, "running"))
        elif not await insist(lambda: self._claims.revive(_count_crash(turn), "queued")):
            await self._let_wait(turn, status, mark)
        await insist(lambda: self._lane.put_back(fence.turn_id))

    async def _let_wait(self, turn: TurnRecord, status: str | None, mark: str) -> None:
        """One that was let go in order has not crashed, although Redis has not heard of it."""
        if (turn.status, status) == ("queued", "running"):
            with suppress(Fenced):  # it was claimed again since, and that one crashed
                await make_good(self._claims, self._memory, turn, mark)
                await insist(lambda: self._claims.let_wait(turn))

    async def _lift_failed(self) -> None:
        for fence in await self._memory.fences():
            if fence.state == "failed":
                await lift(self._memory, fence)


def _nobody() -> str:
    return ""


def _count_crash(turn: TurnRecord) -> TurnRecord:
    """For a claim that cannot, since Redis has forgotten; one that was let go has not crashed."""
    return turn if turn.status == "queued" else replace(turn, attempt=turn.attempt + 1)


def _read_record(fence: Fence) -> TurnRecord | None:
    try:
        return msgspec.json.decode(fence.record, type=TurnRecord)
    except msgspec.MsgspecError as error:
        log.error("Turn %s cannot be read: %s", fence.turn_id, type(error).__name__)
        return None
