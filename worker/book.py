"""What the database knows of turns: how they ended, and how far they were told."""

import time
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from shared.record import TurnRecord
from worker import ledger, numbering, outbox, register
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.numbering import Numbering
from worker.transaction import Connection, look, transact

KEPT_S = 3.0
"""More than the last second, which a Redis may lose that writes to its disk once a second."""


class Book:
    """Every method that is awaited may raise TimeoutError, when a put does not land, and
    sqlite3.Error.

    `kept_s`: how long an end is kept that Redis was told.
    """

    def __init__(
        self, saver: TurnSaver, kept_s: float = KEPT_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._saver = saver
        self._clock = clock
        self._kept_s = kept_s
        self._told: dict[str, float] = {}
        self._owed: list[Callable[[], Awaitable[None]]] = []

    async def reserve(self, turn: TurnRecord, seq: int, mark: str) -> int:
        """Lets the turn's chunks be told from number `seq` on; answers up to which.

        `mark`: of a Redis that was told all before.
        """
        bound = seq + numbering.AHEAD
        await transact(
            self._saver,
            lambda connection: numbering.reserve(connection, turn.turn_id, bound, mark),
            locked_s=0,  # followers see nothing meanwhile
        )
        return bound

    async def set_bound(self, turn: TurnRecord, bound: int) -> None:
        """The turn's chunks come to that number, and no further until it is begun again."""
        await transact(
            self._saver, lambda connection: numbering.set_bound(connection, turn.turn_id, bound)
        )

    async def numbering_of(self, turn: TurnRecord) -> Numbering | None:
        """How far the turn's chunks may have been told; None when it has not begun."""
        return await look(
            self._saver, lambda connection: numbering.find_numbering(connection, turn.turn_id)
        )

    async def write_down(self, ending: Ending, *, tell: bool = True) -> None:
        """Notes the end of a turn that has changed nothing; `tell`: Redis does not know it."""

        async def work(connection: Connection) -> None:
            await enter_end(connection, ending, tell=tell)

        await transact(self._saver, work)

    async def end_of(self, turn: TurnRecord) -> Ending | None:
        """How the turn ended, if it has."""

        async def work(connection: Connection) -> Ending | None:
            if ending := await outbox.find(connection, turn.turn_id):
                return replace(ending, turn=turn)
            return await ledger.find_end(connection, turn)

        return await look(self._saver, work)

    async def untold(self) -> list[Ending]:
        """The ends that Redis may not know, the oldest turn's first."""
        return await look(self._saver, outbox.untold)

    def owe(self, write: Callable[[], Awaitable[None]]) -> None:
        """An end could not be written: it is tried again by `pay`."""
        self._owed.append(write)

    async def pay(self) -> None:
        """Writes what is owed, the oldest first."""
        while self._owed:
            await self._owed[0]()
            del self._owed[0]

    def told(self, turn_id: str) -> None:
        """Redis knows the turn's end."""
        self._told[turn_id] = self._clock()

    def keep_told(self) -> None:
        """Redis may just have lost something: what it was told is kept for as long again."""
        self._told = dict.fromkeys(self._told, self._clock())

    async def forget_told(self) -> None:
        """Lets go of the ends that Redis has known for long enough."""
        now = self._clock()
        old = [turn_id for turn_id, since in self._told.items() if now - since >= self._kept_s]
        if old:
            await transact(
                self._saver, lambda connection: outbox.clear(connection, old), locked_s=0
            )
            for turn_id in old:
                del self._told[turn_id]

    async def agents_of_threads(self) -> dict[str, str]:
        """The agent that each thread keeps."""
        return await look(self._saver, register.agents_of_threads)


async def enter_end(connection: Connection, ending: Ending, *, tell: bool = True) -> None:
    """In one transaction with what else the end does."""
    if await ledger.enter(connection, ending):
        await register.count(connection, ending)
    await numbering.clear(connection, ending.turn.turn_id)
    if tell:
        await outbox.post(connection, ending)
