"""One turn, from its claim to its one terminal chunk, or to where the next run goes on from."""

import asyncio
import logging
import time
from collections.abc import Mapping
from functools import partial
from uuid import uuid4

from shared.claims import Claims
from shared.errors import Fenced
from shared.record import TurnRecord
from worker.attempt import attempt, break_off
from worker.conclusion import BROKEN_OFF, CANCELLED, DONE, Account, Outcome
from worker.ending import Ending
from worker.errors import BrokenOff, NotNow
from worker.failures import explain, log_failure, worker_lost
from worker.graph import Graph
from worker.insist import RETRY_S, insist
from worker.lost import Log
from worker.memory import Memory
from worker.publisher import Publisher, open_publisher
from worker.run import Run
from worker.settings import WorkerSettings
from worker.settlement import UNUSABLE, abandon, keep, undo
from worker.telling import let_go, note_waiting, read_log, tell, tell_later
from worker.translate import Translator

ATTEMPTS = {"resume": 2, "rollback": 1}
"""How often a turn is begun, or gone on with after it has taken the worker down."""

log = logging.getLogger(__name__)


class TurnRunner:
    """Runs turns, one at a time."""

    def __init__(
        self,
        claims: Claims,
        memory: Memory,
        agents: Mapping[str, Graph],
        settings: WorkerSettings,
    ) -> None:
        self.turn_id = ""
        """The turn that runs, or the last one that did."""
        self.held: TurnRecord | None = None
        """The turn that was claimed, as long as Redis may not know what has become of it."""
        self._claims = claims
        self._memory = memory
        self._agents = agents
        self._settings = settings
        self._stopping = False
        self._halt: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._publisher: Publisher | None = None

    async def run(self, turn_id: str) -> None:
        """Takes the turn, runs it and ends it; nothing happens when it has ended before.

        Raises Fenced when the turn was taken over, and BrokenOff when it waits again because the
        worker stops.
        """
        # Before the claim: from that on, a cancel is for us.
        self.turn_id, self._halt = turn_id, asyncio.get_running_loop().create_future()
        run_id = str(uuid4())
        turn = await insist(lambda: self._claims.claim(turn_id, run_id))
        if turn is None:
            return
        self._judge(turn)
        what = "starts" if turn.claim == 1 else f"goes on, attempt {turn.attempt}"
        log.info("Turn %s of thread %s %s.", turn.turn_id, turn.thread_id, what)
        self.held = turn
        try:
            ending = await self._insist_on_end(turn)
        except Fenced as error:
            log.error("Turn %s was taken over: %s", turn.turn_id, error)
            raise
        finally:
            self.held = None
        reason = ending.failure.code if ending.failure else ending.outcome
        log.info("Turn %s ends: %s.", turn.turn_id, reason)

    def held_id(self) -> str:
        """Of the turn that was claimed; "" when there is none."""
        return self.held.turn_id if self.held else ""

    def stop(self) -> None:
        """Breaks the running turn off, because the worker stops; the next one goes on with it."""
        self._stopping = True
        self._end_by(BROKEN_OFF)

    def cancel(self, turn_id: str) -> None:
        """Undoes the turn if it is the running one; it is too late once it is being committed."""
        if turn_id == self.turn_id:
            self._end_by(CANCELLED)

    def probe(self) -> None:
        """Has Redis asked for a cancel that was not heard, and whether it still knows the turn."""
        if self._publisher:
            self._publisher.probe()

    def _judge(self, turn: TurnRecord) -> None:
        """Ends the turn before it runs, if that is what is to become of it."""
        if turn.status == "cancelling":
            self.cancel(turn.turn_id)
        elif turn.attempt > ATTEMPTS[self._settings.ON_WORKER_LOST]:
            self._end_by(Outcome(worker_lost(turn.attempt - 1)))
        elif self._stopping:
            self.stop()

    def _end_by(self, outcome: Outcome) -> None:
        if not self._halt.done():
            self._halt.set_result(outcome)

    async def _insist_on_end(self, turn: TurnRecord) -> Ending:
        """Tries again while the database cannot be used for now."""
        while True:
            try:
                return await self._bring_to_end(turn)
            except NotNow as error:
                log.warning("Turn %s is tried again: %s", turn.turn_id, error)
                await asyncio.sleep(RETRY_S)
                if self._stopping:
                    await insist(lambda: self._claims.let_wait(turn))
                    raise BrokenOff("The worker stops.") from error

    async def _bring_to_end(self, turn: TurnRecord) -> Ending:
        try:
            ended = await self._memory.end_of(turn)
            so_far = None if ended else await self._read_log(turn)
        except UNUSABLE as error:
            raise NotNow(f"The database cannot be used: {error}") from error
        if so_far:
            return await self._carry_out(turn, so_far)
        assert ended
        # Redis has forgotten that it ended: it came back without its last second.
        await tell_later(self._claims, self._memory, ended)
        return ended

    async def _read_log(self, turn: TurnRecord) -> Log:
        return await read_log(self._claims, self._memory, turn, self._claims.mark)

    async def _carry_out(self, turn: TurnRecord, so_far: Log) -> Ending:
        """Runs the turn and tells it as it goes; then keeps it, undoes it, or lets it go."""
        accepted = time.monotonic() - turn.waited_s

        def elapsed_s() -> float:
            return time.monotonic() - accepted

        preview_chars, clock = (
            self._settings.TOOL_PREVIEW_CHARS,
            lambda: turn.time_after(elapsed_s()),
        )
        translator = Translator(turn.turn_id, preview_chars, clock)
        cancel = partial(self.cancel, turn.turn_id)
        async with open_publisher(self._claims, turn, so_far.entries, cancel) as publisher:
            self._publisher = publisher
            account = Account(
                turn,
                translator.tally,
                elapsed_s,
                lambda: publisher.entries,
            )
            run = Run(turn, self._agents, self._settings, translator, publisher, so_far)
            ending = await self._work(run, account)
        if ending is None and not await let_go(self._claims, turn, publisher):
            ending = await undo(self._memory, account, CANCELLED)
        if ending is None:
            raise BrokenOff("The worker stops.")
        await tell(self._claims, self._memory, ending, publisher)
        return ending

    async def _work(self, run: Run, account: Account) -> Ending | None:
        """How the turn has ended; None when it was broken off."""
        try:
            outcome = await attempt(run, self._memory, self._halt)
            if outcome is BROKEN_OFF:
                await break_off(run, self._memory)
                await note_waiting(self._memory, run.turn, run.publisher)
                return None
        except Fenced:
            await abandon(self._memory, run.turn)
            raise
        except NotNow:
            raise
        except Exception as error:  # noqa: BLE001  whatever happens, the turn ends and says so
            log_failure(run.turn.turn_id, error)
            outcome = Outcome(explain(error))
        run.publisher.close()
        return await self._settle(account, outcome)

    async def _settle(self, account: Account, outcome: Outcome) -> Ending:
        if outcome is not DONE:
            return await undo(self._memory, account, outcome)
        return await keep(self._memory, account, self._decide)

    def _decide(self) -> Outcome:
        """What a turn that has been done is to come to, as far as is known now."""
        wanted = self._halt.result() if self._halt.done() else DONE
        return DONE if wanted is BROKEN_OFF else wanted
