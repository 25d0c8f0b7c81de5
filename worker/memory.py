"""What the worker remembers: threads, the one turn that may change one, and how turns ended.

Each method that writes is one transaction. SQLite commits first: a turn has ended when its end is
in ledger and outbox, and Redis is told after that.
"""

import logging
from collections.abc import Mapping

from msgspec.structs import replace

from shared import characters
from shared.record import TurnRecord
from worker import ledger, outbox, rollback
from worker.checkpoint_ids import continue_above
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.failures import ThreadQuarantined
from worker.fence import (
    Fence,
    fenced_pending,
    fenced_threads,
    find_fence,
    has_landed,
    lower_fence,
    mark_failed,
    raise_fence,
    rewrite_record,
    take_up,
)
from worker.gate import OpenTurn
from worker.graph import Graph
from worker.seal import is_long, seal
from worker.standing import NOTHING, Standing, parse_rows, read_rows
from worker.state import StateUnreadable, count_messages, read_messages, seal_head
from worker.transaction import Connection, look, transact

log = logging.getLogger(__name__)

NOWHERE = "none"
"""No checkpoint has this id."""


class Memory:
    """Every method may raise TimeoutError, when a put does not land, and sqlite3.Error."""

    def __init__(self, saver: TurnSaver, agents: Mapping[str, Graph]) -> None:
        self._saver = saver
        self._agents = agents
        self.gate = saver.gate

    async def begin(self, turn: TurnRecord) -> bool:
        """Fences the turn's thread and lets the turn write; True if its input has landed before.

        Then LangGraph goes on from what is there. Raises ThreadQuarantined and RestoreFailed.
        """
        record = characters.encode(turn).decode()

        async def work(connection: Connection) -> tuple[Fence, bool]:
            if fence := await find_fence(connection, turn.thread_id):
                if not fence.belongs_to(turn):
                    raise ThreadQuarantined
                if await has_landed(connection, fence):
                    return await take_up(connection, fence, record), True
                await rollback.restore(connection, fence)
            return await raise_fence(connection, turn.thread_id, turn.turn_id, record), False

        fence, landed = await transact(self._saver, work)
        continue_above(fence.highest)
        self.gate.open(OpenTurn(turn.turn_id, turn.thread_id, fence.highest or ""))
        return landed

    async def let_go(self, turn: TurnRecord) -> None:
        """Notes that the turn, if it has begun, was not left by a crash but waits."""
        record = characters.encode(replace(turn, status="queued")).decode()
        await transact(
            self._saver, lambda connection: rewrite_record(connection, turn.turn_id, record)
        )

    async def standing(self, turn: TurnRecord) -> Standing:
        """What the turn has written so far; nothing is under way when it is read."""
        fence, graph = await self.fence_of(turn.thread_id), self._agents.get(turn.agent)
        if not (graph and fence and fence.belongs_to(turn)):
            return NOTHING
        rows = await look(self._saver, lambda connection: read_rows(connection, fence))
        pending = await look(self._saver, lambda connection: fenced_pending(connection, fence))
        try:
            before = await read_messages(graph, turn.thread_id, fence.head or NOWHERE, pending)
        except StateUnreadable as error:  # there may be none that are messages
            log.warning("What thread %s had before is not known: %s", turn.thread_id, error)
            before = []
        return parse_rows(graph, rows, [str(getattr(message, "id", "")) for message in before])

    async def drain(self) -> None:
        """Lets nothing more be put, and returns when nothing is under way."""
        self.gate.close()
        await look(self._saver, _do_nothing)

    async def commit(self, ending: Ending) -> None:
        """Keeps what the turn has put. From here on it is too late for a cancel."""

        async def work(connection: Connection) -> None:
            await lower_fence(connection, ending.turn.thread_id)
            await _write_down(connection, ending)

        await transact(self._saver, work)

    async def shorten(self, turn: TurnRecord) -> None:
        """Seals the turn's thread if it is long; raises StateUnreadable and HeadGone."""
        graph, thread_id = self._agents.get(turn.agent), turn.thread_id
        if not graph or not await look(
            self._saver, lambda connection: is_long(connection, thread_id)
        ):
            return
        if head := await seal_head(graph, thread_id):
            await transact(self._saver, lambda connection: seal(connection, thread_id, head))

    async def restore(self, fence: Fence, ending: Ending | None) -> None:
        """Makes the thread what it was; raises RestoreFailed."""
        self.gate.close()

        async def work(connection: Connection) -> None:
            await rollback.restore(connection, fence)
            if ending:
                await _write_down(connection, ending)

        await transact(self._saver, work)

    async def quarantine(self, ending: Ending) -> None:
        """Keeps the fence of a thread that could not be restored, and lets no turn begin on it."""

        async def work(connection: Connection) -> None:
            await mark_failed(connection, ending.turn.thread_id)
            await _write_down(connection, ending)

        await transact(self._saver, work)

    async def write_down(self, ending: Ending, *, tell: bool = True) -> None:
        """Notes the end of a turn that has changed nothing; `tell`: Redis does not know it."""

        async def work(connection: Connection) -> None:
            await ledger.enter(connection, ending)
            if tell:
                await outbox.post(connection, ending)

        await transact(self._saver, work)

    async def fence_of(self, thread_id: str) -> Fence | None:
        """The thread's fence; nothing is under way when it is read."""
        return await look(self._saver, lambda connection: find_fence(connection, thread_id))

    async def fences(self) -> list[Fence]:
        """All fences, those of the oldest turns first."""

        async def work(connection: Connection) -> list[Fence]:
            threads = await fenced_threads(connection)
            found = [await find_fence(connection, thread_id) for thread_id in threads]
            return [fence for fence in found if fence]

        return await look(self._saver, work)

    async def end_of(self, turn: TurnRecord) -> Ending | None:
        """How the turn ended, if it has."""
        return await look(self._saver, lambda connection: ledger.find_end(connection, turn))

    async def untold(self) -> list[Ending]:
        """The ends that Redis may not know, the oldest turn's first."""
        return await look(self._saver, outbox.untold)

    async def told(self, turn_id: str) -> None:
        """Redis knows the turn's end."""
        await transact(self._saver, lambda connection: outbox.clear(connection, turn_id))

    async def agents_of_threads(self) -> dict[str, str]:
        """The agent of each thread that has had a turn."""
        return await look(self._saver, ledger.agents_of_threads)

    async def count_added(self, fence: Fence, agent: str) -> int | None:
        """How many messages the thread has more than before its turn, pending ones included.

        None when the agent is not there any more. Raises StateUnreadable.
        """
        if (graph := self._agents.get(agent)) is None:
            return None
        before = await look(self._saver, lambda connection: fenced_pending(connection, fence))
        now = await count_messages(graph, fence.thread_id)
        return now - await count_messages(graph, fence.thread_id, fence.head or NOWHERE, before)


async def _do_nothing(_: Connection) -> None:
    pass


async def _write_down(connection: Connection, ending: Ending) -> None:
    await ledger.enter(connection, ending)
    await outbox.post(connection, ending)
