"""The one way into the checkpoint database while a turn runs.

- G1  A put lands only if the open turn makes it, on its own thread.
- G2  Once the gate is closed no put begins, whoever still runs.
- G3  Puts go one by one, and whoever closes the gate and then holds `alone` knows that none is
      under way or will be. Awaiting the turn's task would not do: LangGraph writes from callbacks
      that outlive it.
- G4  A put adds rows that sort above those the thread had, and so replaces none of them. LangGraph
      takes the highest id for the latest.

Whom a task works for is told by a context variable, which tasks and LangGraph's threads inherit;
one that has swallowed its cancellation still carries what it belonged to. That is not the turn's id
but the opening of the gate: what is left of a first run is not let in when the turn is run again.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from shared.errors import TurnkeeperError


class TurnClosed(TurnkeeperError):
    """Who asks works for a turn that is over, or for none."""

    code = "turn_closed"


class PutRefused(TurnkeeperError):
    """The open turn may not write this."""

    code = "put_refused"


@dataclass(frozen=True, eq=False)
class OpenTurn:
    """One opening of the gate. `above`: the highest checkpoint id that the thread has; empty for a
    new thread.
    """

    turn_id: str
    thread_id: str
    above: str


CURRENT_TURN: ContextVar[OpenTurn | None] = ContextVar("CURRENT_TURN", default=None)
"""What a task works for."""


class Gate:
    """Shared by reference: in strict mode LangGraph takes a copy of the saver for each graph."""

    def __init__(self) -> None:
        self._turn: OpenTurn | None = None
        self._alone = asyncio.Lock()

    def open(self, turn: OpenTurn) -> None:
        """From now on this turn may write."""
        assert self._turn is None, "one turn at a time"
        self._turn = turn

    @property
    def turn(self) -> OpenTurn | None:
        """The turn that may write."""
        return self._turn

    def close(self) -> None:
        """From now on nobody may."""
        self._turn = None

    def check(self) -> OpenTurn:
        """The open turn; raises TurnClosed when who asks does not work for it."""
        if self._turn is None or self._turn is not CURRENT_TURN.get():
            raise TurnClosed("The turn is over.")
        return self._turn

    def check_caller(self) -> None:
        """Raises TurnClosed when who asks works for a turn that is over.

        Who works for none may be a thread of the open turn, which has not inherited it.
        """
        if CURRENT_TURN.get() is not None:
            self.check()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Nothing is put meanwhile."""
        async with self._alone:
            yield

    @asynccontextmanager
    async def passing(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> AsyncGenerator[None]:
        """A put, of a new checkpoint if it has an id; raises TurnClosed and PutRefused."""
        turn = self.check()
        if thread_id != turn.thread_id:
            raise PutRefused("A turn may write to its own thread only.")
        if checkpoint_id is not None and checkpoint_id <= turn.above:
            raise PutRefused("A checkpoint's id must be above those that the thread has.")
        # Nothing is awaited between the check and the place in the lock's queue, which is first in,
        # first out: so whoever closes the gate and then wants to be alone comes after this put.
        async with self._alone:
            yield
