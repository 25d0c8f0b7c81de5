"""A turn, and what there is of it."""

import asyncio
from collections.abc import Callable
from typing import Any

from shared.chunks import Chunk
from tests.fake_llama import Call
from tests.traceless.rows import Rows, count_messages
from tests.traceless.view import View
from tests.until import until

STANDING = {"FakeLlama._serve", "_shutdown_watcher"}
"""What a turn begins and leaves: connections of the model server, and sse-starlette's one task."""


class Turn:
    """`rows_before`: its thread's rows before it was posted."""

    def __init__(self, view: View, thread_id: str) -> None:
        self.view = view
        self.turn_id = ""
        self.rows_before = view.rows(thread_id)
        self._thread_id = thread_id
        self._tasks_before = asyncio.all_tasks()
        self._n_calls_before = len(view.llama.calls)

    async def post(self, text: str) -> None:
        """It is accepted."""
        self.turn_id = await self.view.service.post(text, thread_id=self._thread_id)

    @property
    def calls(self) -> list[Call]:
        """What the model was asked since."""
        return self.view.llama.calls[self._n_calls_before :]

    @property
    def log(self) -> list[dict[str, Any]]:
        """Its chunks as Redis has them."""
        return self.view.log(self.turn_id)

    @property
    def rows(self) -> Rows:
        """Its thread as the database has it."""
        return self.view.rows(self._thread_id)

    @property
    def n_messages(self) -> int:
        """How many messages it has put into the database."""
        return count_messages(self.rows) - count_messages(self.rows_before)

    @property
    def has_ended(self) -> bool:
        """It has told its last chunk."""
        log = self.log
        return bool(log) and log[-1]["completed"]

    def has_told(self, kind: str) -> bool:
        """It has told a chunk of that type."""
        return any(chunk["type"] == kind for chunk in self.log)

    async def reach(self, point: Callable[["Turn"], object]) -> None:
        """Waits until it is at that point."""

        def reached() -> object:
            assert not self.has_ended, self.log
            return point(self)

        await until(reached)

    async def cancel(self) -> list[Chunk]:
        """Cancels it and answers all its chunks once it has ended."""
        answer = await self.view.service.client.post(f"/turns/{self.turn_id}/cancel")
        assert (answer.status_code, answer.json()["status"]) == (202, "cancelling"), answer.text
        return await self.end()

    async def end(self) -> list[Chunk]:
        """All its chunks once it has ended, after checking that only the last one says so."""
        seen = await self.view.service.follow(self.turn_id)
        assert [chunk.completed for chunk in seen] == [False] * (len(seen) - 1) + [True], seen
        return seen

    async def let_go(self) -> list[object]:
        """Frees all that is held, and answers what is told and asked from then on."""
        n_told, n_asked = len(self.log), len(self.calls)
        self.view.tools.let_go()
        await self.settle()
        return [*self.log[n_told:], *self.calls[n_asked:]]

    async def settle(self) -> None:
        """Waits until nothing that it began is left."""
        await until(lambda: not (self.view.tools.held or self._at_work()))

    def _at_work(self) -> set[str]:
        tasks = asyncio.all_tasks() - self._tasks_before - {asyncio.current_task()}
        return {name_of(task) for task in tasks} - STANDING


def name_of(task: asyncio.Task[Any]) -> str:
    """The function that the task runs."""
    return getattr(task.get_coro(), "__qualname__", "")
