"""One turn, from its claim to its one terminal chunk."""

import asyncio
import logging
import time
from collections.abc import Mapping
from functools import partial

from shared.claims import Claims
from shared.errors import Fenced
from shared.record import TurnRecord
from worker.conclusion import CANCELLED, DONE, Account, Outcome
from worker.ending import Ending
from worker.errors import NotNow
from worker.failures import (
    ROLLBACK_FAILED,
    WORKER_LOST,
    ThreadQuarantined,
    explain,
    log_failure,
)
from worker.graph import Graph
from worker.insist import insist
from worker.memory import Memory
from worker.publisher import open_publisher
from worker.rollback import RestoreFailed
from worker.run import Run, drive
from worker.settings import WorkerSettings
from worker.settlement import NOT_SAVED, UNUSABLE, abandon, keep, tell, undo
from worker.translate import Translator

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
        self._claims = claims
        self._memory = memory
        self._agents = agents
        self._settings = settings
        self._stopping = False
        self._turn_id = ""
        self._halt: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    async def run(self, turn_id: str) -> None:
        """Takes the turn, runs it and ends it; nothing happens when it has ended before.

        Raises Fenced when the turn was taken over, and NotNow.
        """
        # Before the claim: from that on, a cancel is for us.
        self._turn_id, self._halt = turn_id, asyncio.get_running_loop().create_future()
        if self._stopping:
            self.stop()
        turn = await insist(lambda: self._claims.claim(turn_id))
        if turn is None:
            return
        if turn.status == "cancelling":
            self.cancel(turn_id)
        log.info("Turn %s of thread %s starts.", turn.turn_id, turn.thread_id)
        try:
            ending = await self._bring_to_end(turn)
            await tell(self._claims, self._memory, ending)
        except Fenced as error:
            log.error("Turn %s was taken over: %s", turn.turn_id, error)
            raise
        reason = ending.failure.code if ending.failure else ending.outcome
        log.info("Turn %s ends: %s.", turn.turn_id, reason)

    def stop(self) -> None:
        """Ends the running turn at once, because the worker stops."""
        self._stopping = True
        self._end_by(Outcome(WORKER_LOST))

    def cancel(self, turn_id: str) -> None:
        """Undoes the turn if it is the running one; it is too late once it is being committed."""
        if turn_id == self._turn_id:
            self._end_by(CANCELLED)

    async def look_for_cancel(self) -> None:
        """Cancels the running turn if a person wants that; may raise RedisAway."""
        turn_id = self._turn_id
        if turn_id and await self._claims.status(turn_id) == "cancelling":
            self.cancel(turn_id)

    def _end_by(self, outcome: Outcome) -> None:
        if not self._halt.done():
            self._halt.set_result(outcome)

    async def _bring_to_end(self, turn: TurnRecord) -> Ending:
        try:
            ended = await self._memory.end_of(turn)
        except UNUSABLE as error:
            raise NotNow(f"The database cannot be read: {error}") from error
        # Redis may have forgotten that it ended: it came back without its last second.
        return ended or await self._carry_out(turn)

    async def _carry_out(self, turn: TurnRecord) -> Ending:
        """Runs the turn and tells it as it goes; then keeps what it did, or undoes it."""
        began = time.monotonic()
        translator = Translator(turn.turn_id, self._settings.TOOL_PREVIEW_CHARS)
        account = Account(turn, translator.tally, lambda: turn.queued_s + time.monotonic() - began)
        cancel = partial(self.cancel, turn.turn_id)
        async with open_publisher(self._claims, turn, cancel) as publisher:
            try:
                outcome = await self._attempt(
                    Run(turn, self._agents, self._settings, translator, publisher)
                )
            except Fenced:
                await abandon(self._memory, turn)
                raise
            publisher.close()
            return await self._settle(account, outcome)

    async def _attempt(self, run: Run) -> Outcome:
        if self._halt.done():
            return self._outcome()
        try:
            await self._memory.begin(run.turn)
        except UNUSABLE as error:
            log.error("Turn %s cannot begin: %s", run.turn.turn_id, error)
            return NOT_SAVED
        except (ThreadQuarantined, RestoreFailed) as error:
            log.error("Turn %s cannot begin: %s", run.turn.turn_id, type(error).__name__)
            return Outcome(ROLLBACK_FAILED)
        try:
            return await drive(run, self._memory.gate, self._halt)
        except Fenced:
            raise
        except Exception as error:  # noqa: BLE001  whatever happens, the turn ends and says so
            log_failure(run.turn.turn_id, error)
            return Outcome(explain(error))

    async def _settle(self, account: Account, outcome: Outcome) -> Ending:
        if outcome is not DONE:
            return await undo(self._memory, account, outcome)
        return await keep(self._memory, account, self._outcome)

    def _outcome(self) -> Outcome:
        """What the turn is to come to, as far as is known now."""
        return self._halt.result() if self._halt.done() else DONE
