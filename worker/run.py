"""A run of an agent on a turn: it ends by itself, or it is ended."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from shared.record import TurnRecord
from worker.conclusion import DONE, Outcome
from worker.failures import TIMEOUT, AgentBroke, AgentCancelled, UnknownAgent
from worker.gate import CURRENT_TURN, Gate, OpenTurn
from worker.graph import Graph, stream_parts
from worker.lost import Log
from worker.publisher import Publisher
from worker.settings import WorkerSettings
from worker.translate import Translator

CANCEL_S = 5.0
"""How long a run may take to end once it is cancelled."""

log = logging.getLogger(__name__)


class Run(NamedTuple):
    """What a run needs; `publisher` is told of it as it goes. `log`: what was told
    before.
    """

    turn: TurnRecord
    agents: Mapping[str, Graph]
    settings: WorkerSettings
    translator: Translator
    publisher: Publisher
    log: Log


async def drive(
    run: Run, given: dict[str, Any] | None, gate: Gate, halt: asyncio.Future[Outcome]
) -> Outcome:
    """Runs the agent until it ends, `halt` says otherwise, or its time is up.

    `given`: its input; None when it goes on from what its thread holds. Raises what the agent
    raises, and Fenced. When it returns, the turn's gate is closed and the run has ended, or it does
    not end by being cancelled and is left to itself.
    """
    running = asyncio.create_task(stream(run, given, gate.turn))
    try:
        await asyncio.wait(
            {running, halt, run.publisher.sending},
            timeout=max(0.0, run.settings.TURN_TIMEOUT_S - run.turn.ran_ms / 1000),
            return_when=asyncio.FIRST_COMPLETED,
        )
        if run.publisher.sending.done():
            run.publisher.sending.result()
        if halt.done():
            return halt.result()
        if not running.done():
            return Outcome(TIMEOUT)
        check(running)
        return DONE
    finally:
        # Closed first: what a cancelled graph would still write must not be let in.
        gate.close()
        await end(running, run.turn.turn_id)


async def stream(run: Run, given: dict[str, Any] | None, opened: OpenTurn | None) -> None:
    """Runs the agent to its end and tells each part; what it puts is put for `opened`."""
    CURRENT_TURN.set(opened)
    graph = run.agents.get(run.turn.agent)
    if graph is None:
        raise UnknownAgent(run.turn.agent)
    async with aclosing(stream_parts(graph, given, configure(run))) as parts:
        async for part in parts:
            for chunk in run.translator.translate(part):
                run.publisher.put(chunk)


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


def configure(run: Run) -> RunnableConfig:
    """What LangGraph is told beside the input."""
    return {
        "configurable": {"thread_id": run.turn.thread_id},
        "run_id": UUID(run.turn.run_id),
        "recursion_limit": run.settings.STEP_LIMIT,
        "metadata": {"turn_id": run.turn.turn_id},
    }


def read_input(turn: TurnRecord) -> dict[str, Any]:
    """The agent's input: the person's text as a message, or the object as it came."""
    if turn.request.input is not None:
        return turn.request.input
    # The message's id is the turn's: given again after a crash, it is still one message.
    return {"messages": [HumanMessage(turn.request.text or "", id=turn.turn_id)]}
