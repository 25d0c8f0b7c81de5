"""One turn, from its claim to its one terminal chunk."""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any
from uuid import UUID

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from shared.claims import Claims
from shared.errors import Fenced
from shared.record import Failure, TurnRecord
from worker.conclusion import conclude
from worker.failures import (
    AgentBroke,
    AgentCancelled,
    TurnTimeout,
    UnknownAgent,
    WorkerStopping,
    explain,
    log_failure,
)
from worker.graph import Graph, stream_parts
from worker.insist import insist
from worker.publisher import Publisher, open_publisher
from worker.settings import WorkerSettings
from worker.translate import Translator

CANCEL_S = 5.0
"""How long a turn may take to end once it is cancelled."""

log = logging.getLogger(__name__)


class TurnRunner:
    """Runs turns, one at a time."""

    def __init__(
        self, claims: Claims, agents: Mapping[str, Graph], settings: WorkerSettings
    ) -> None:
        self._claims = claims
        self._agents = agents
        self._settings = settings
        self._stopping = asyncio.Event()

    async def run(self, turn_id: str) -> None:
        """Takes the turn, runs it and ends it; nothing happens when it has ended before.

        Raises Fenced when the turn was taken over.
        """
        turn = await insist(lambda: self._claims.claim(turn_id))
        if turn is None:
            return
        log.info("Turn %s of thread %s starts.", turn.turn_id, turn.thread_id)
        began = time.monotonic()
        translator = Translator(turn.turn_id, self._settings.TOOL_PREVIEW_CHARS)
        try:
            failure = await self._tell(turn, translator)
            elapsed_s = turn.queued_s + time.monotonic() - began
            chunk = conclude(turn, translator.tally, failure, elapsed_s)
            await insist(lambda: self._claims.finish(turn, chunk, failure))
        except Fenced as error:
            log.error("Turn %s was taken over: %s", turn.turn_id, error)
            raise
        log.info("Turn %s ends: %s.", turn.turn_id, failure.code if failure else "done")

    async def _tell(self, turn: TurnRecord, translator: Translator) -> Failure | None:
        """Runs the turn and tells it as it goes; answers why it failed."""
        try:
            async with open_publisher(self._claims, turn) as publisher:
                await self._drive(turn, translator, publisher)
        except Fenced:
            raise
        except Exception as error:  # noqa: BLE001  whatever happens, the turn ends and says so
            log_failure(turn.turn_id, error)
            return explain(error)
        return None

    def stop(self) -> None:
        """Ends the running turn at once, because the worker stops."""
        self._stopping.set()

    async def _drive(self, turn: TurnRecord, translator: Translator, publisher: Publisher) -> None:
        running = asyncio.create_task(self._stream(turn, translator, publisher))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait(
                {running, stopping, publisher.sending},
                timeout=self._settings.TURN_TIMEOUT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if publisher.sending.done():
                publisher.sending.result()
            if stopping.done():
                raise WorkerStopping
            if not running.done():
                raise TurnTimeout
            check(running)
        finally:
            stopping.cancel()
            await end(running, turn.turn_id)

    async def _stream(self, turn: TurnRecord, translator: Translator, publisher: Publisher) -> None:
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
    """Cancels what still runs; what does not end by that is left to itself."""
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
