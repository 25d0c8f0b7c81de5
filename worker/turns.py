"""One turn, from its claim to its one terminal chunk."""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import Any
from uuid import UUID

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from shared.claims import Claims
from shared.errors import Fenced
from shared.record import TurnRecord
from worker.conclusion import CANCELLED, DONE, Account, Outcome
from worker.ending import Ending
from worker.failures import (
    TIMEOUT,
    WORKER_LOST,
    AgentBroke,
    AgentCancelled,
    UnknownAgent,
    explain,
    log_failure,
)
from worker.gate import CURRENT_TURN
from worker.graph import Graph, stream_parts
from worker.insist import insist
from worker.memory import Memory
from worker.publisher import Publisher, open_publisher
from worker.settings import WorkerSettings
from worker.settlement import abandon, already_settled, keep, tell, undo
from worker.translate import Translator

CANCEL_S = 5.0
"""How long a turn may take to end once it is cancelled."""

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

        Raises Fenced when the turn was taken over.
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
            ending = await already_settled(self._memory, turn) or await self._carry_out(turn)
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
        if self._turn_id and await self._claims.is_cancelling(turn_id := self._turn_id):
            self.cancel(turn_id)

    def _end_by(self, outcome: Outcome) -> None:
        if not self._halt.done():
            self._halt.set_result(outcome)

    async def _carry_out(self, turn: TurnRecord) -> Ending:
        """Runs the turn and tells it as it goes; then keeps what it did, or undoes it."""
        began = time.monotonic()
        translator = Translator(turn.turn_id, self._settings.TOOL_PREVIEW_CHARS)
        account = Account(turn, translator.tally, lambda: turn.queued_s + time.monotonic() - began)
        cancel = partial(self.cancel, turn.turn_id)
        async with open_publisher(self._claims, turn, cancel) as publisher:
            try:
                outcome = await self._attempt(turn, translator, publisher)
            except Fenced:
                await abandon(self._memory, turn)
                raise
            publisher.close()
            return await self._settle(account, outcome)

    async def _attempt(
        self, turn: TurnRecord, translator: Translator, publisher: Publisher
    ) -> Outcome:
        if self._halt.done():
            return self._outcome()
        try:
            await self._memory.begin(turn)
            return await self._drive(turn, translator, publisher)
        except Fenced:
            raise
        except Exception as error:  # noqa: BLE001  whatever happens, the turn ends and says so
            log_failure(turn.turn_id, error)
            return Outcome(explain(error))

    async def _drive(
        self, turn: TurnRecord, translator: Translator, publisher: Publisher
    ) -> Outcome:
        running = asyncio.create_task(self._stream(turn, translator, publisher))
        try:
            await asyncio.wait(
                {running, self._halt, publisher.sending},
                timeout=self._settings.TURN_TIMEOUT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if publisher.sending.done():
                publisher.sending.result()
            if self._halt.done():
                return self._outcome()
            if not running.done():
                return Outcome(TIMEOUT)
            check(running)
            return DONE
        finally:
            # Closed first: what a cancelled graph would still write must not be let in.
            self._memory.gate.close()
            await end(running, turn.turn_id)

    async def _settle(self, account: Account, outcome: Outcome) -> Ending:
        if outcome is not DONE:
            return await undo(self._memory, account, outcome)
        return await keep(self._memory, account, self._outcome)

    def _outcome(self) -> Outcome:
        """What the turn is to come to, as far as is known now."""
        return self._halt.result() if self._halt.done() else DONE

    async def _stream(self, turn: TurnRecord, translator: Translator, publisher: Publisher) -> None:
        CURRENT_TURN.set(turn.turn_id)
        graph = self._agents.get(turn.agent)
        if graph is None:
            raise UnknownAgent(turn.agent)
        async with aclosing(stream_parts(graph, read_input(turn), self._config(turn))) as parts:
            async for part in parts:
                for chunk in translator.translate(part):
                    publisher.put(chunk)

    def _config(self, turn: TurnRecord) -> RunnableConfig:
        return {
            "configurable": {"thread_id": turn.thread_id},
            "run_id": UUID(turn.run_id),
            "recursion_limit": self._settings.STEP_LIMIT,
            "metadata": {"turn_id": turn.turn_id},
        }


def check(ended: asyncio.Task[None]) -> None:
    """Raises what the agent raised, as an error that a turn may end with."""
    if ended.cancelled():
        raise AgentCancelled
    error = ended.exception()
    if isinstance(error, Exception):
        raise error
    if error:
        raise AgentBroke(error) from error


async def end(running: asyncio.Task[None], turn_id: str) -> None:
    """Cancels what still runs, once; what does not end by that is left to itself."""
    running.cancel()
    await asyncio.wait({running}, timeout=CANCEL_S)
    if not running.done():
        log.error("Turn %s does not end when it is cancelled.", turn_id)
    elif not running.cancelled():
        running.exception()  # known already, or of no consequence any more


def read_input(turn: TurnRecord) -> dict[str, Any]:
    """The agent's input: the person's text as a message, or the object as it came."""
    if turn.request.input is not None:
        return turn.request.input
    # The message's id is the turn's: given again after a crash, it is still one message.
    return {"messages": [HumanMessage(turn.request.text or "", id=turn.turn_id)]}
