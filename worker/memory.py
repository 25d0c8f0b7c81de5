"""What the worker remembers: threads, the one turn that may change one, and how turns ended.

Each method that writes is one transaction. SQLite commits first: a turn has ended when its end is
in ledger and outbox, and Redis is told after that.
"""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from shared import characters
from shared.record import TurnRecord
from worker import numbering, register, rollback
from worker.book import KEPT_S, Book, enter_end
from worker.checkpoint_ids import continue_above
from worker.checkpoints import TurnSaver
from worker.ending import Ending
from worker.failures import ThreadOfAnother, ThreadQuarantined
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
from worker.standing import NOTHING, NOWHERE, Standing, find_standing
from worker.state import count_messages, seal_head
from worker.transaction import Connection, look, transact


class Begun(NamedTuple):
    """`landed`: the turn's input was there before, and LangGraph goes on from what is there.

    `bound`: up to which number its chunks may be told.
    """

    landed: bool
    bound: int


class Memory(Book):
    """Every method may raise TimeoutError, when a put does not land, and sqlite3.Error."""

    def __init__(
        self,
        saver: TurnSaver,
        agents: Mapping[str, Graph],
        *,
        kept_s: float = KEPT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(saver, kept_s, clock)
        self._agents = agents
        self.gate = saver.gate

    async def begin(self, turn: TurnRecord, mark: str | None = "") -> Begun:
        """Fences the turn's thread and lets the turn write.

        `mark`: of the Redis that has all of the turn's chunks so far; None when none has. Raises
        ThreadQuarantined, ThreadOfAnother and RestoreFailed.
        """
        record = characters.encode(turn).decode()

        async def fence_in(connection: Connection) -> tuple[Fence, bool]:
            if fence := await find_fence(connection, turn.thread_id):
                if not fence.belongs_to(turn):
                    raise ThreadQuarantined
                if await has_landed(connection, fence):
                    return await take_up(connection, fence, record), True
                await rollback.restore(connection, fence)
            return await raise_fence(connection, turn.thread_id, turn.turn_id, record), False

        async def work(connection: Connection) -> tuple[Fence, Begun]:
            if (agent := await register.note(connection, turn)) != turn.agent:
                raise ThreadOfAnother(turn.thread_id, agent)
            fence, landed = await fence_in(connection)
            bound = await numbering.begin(connection, turn.turn_id, turn.seq, mark)
            return fence, Begun(landed, bound)

        fence, begun = await transact(self._saver, work)
        continue_above(fence.highest)
        self.gate.open(OpenTurn(turn.turn_id, turn.thread_id, fence.highest or ""))
        return begun

    async def let_go(self, turn: TurnRecord, last: int) -> None:
        """Notes that the turn, if it has begun, was not left by a crash but waits.

        `last`: the highest number that its chunks come to.
        """
        record = characters.encode(replace(turn, status="queued")).decode()

        async def work(connection: Connection) -> None:
            await rewrite_record(connection, turn.turn_id, record)
            await numbering.set_bound(connection, turn.turn_id, last)

        await transact(self._saver, work)

    async def standing(self, turn: TurnRecord) -> Standing:
        """What the turn has written so far; nothing is under way when it is read."""
        fence, graph = await self.fence_of(turn.thread_id), self._agents.get(turn.agent)
        if not (graph and fence and fence.belongs_to(turn)):
            return NOTHING
        return await find_standing(self._saver, graph, fence)

    async def drain(self) -> None:
        """Lets nothing more be put, and returns when nothing is under way."""
        self.gate.close()
        await look(self._saver, _do_nothing)

    async def commit(self, ending: Ending) -> None:
        """Keeps what the turn has put. From here on it is too late for a cancel."""

        async def work(connection: Connection) -> None:
            await lower_fence(connection, ending.turn.thread_id)
            await enter_end(connection, ending)

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
                await enter_end(connection, ending)

        await transact(self._saver, work)

    async def lift(self, fence: Fence) -> None:
        """Makes the thread of a turn that has ended what it was; raises RestoreFailed."""

        async def work(connection: Connection) -> None:
            await rollback.restore(connection, fence)
            await numbering.clear(connection, fence.turn_id)

        await transact(self._saver, work)

    async def quarantine(self, ending: Ending) -> None:
        """Gives up the thread of a turn that ends thereby."""

        async def work(connection: Connection) -> None:
            await mark_failed(connection, ending.turn.thread_id)
            await enter_end(connection, ending)

        await transact(self._saver, work)

    async def give_up(self, fence: Fence) -> None:
        """Keeps the fence of a thread that could not be restored, and lets no turn begin on it."""
        await transact(self._saver, lambda connection: mark_failed(connection, fence.thread_id))

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
