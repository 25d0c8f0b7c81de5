"""The whole service with the workshop's agent, on which threads are told things."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fake_llama import FakeLlama
from tests.redis_seen import looking
from tests.service import run_api, run_worker
from tests.traceless.dialogue import Dialogue, Replies, comparable
from tests.traceless.rows import Rows
from tests.traceless.turn import Turn
from tests.traceless.view import View
from tests.traceless.workshop import AGENTS, NAME, open_workshop

SUBJECT = "subject"
CONTROL = "control"

More = Callable[[asyncio.Event], Mapping[str, Replies]]
"""What the model has to say, some of it held until the event is set."""


class Stage:
    """`dialogue`: what the model says."""

    def __init__(self, view: View, dialogue: Dialogue) -> None:
        self.view = view
        self.dialogue = dialogue

    def rows(self, thread_id: str = SUBJECT) -> Rows:
        """The thread as the database has it."""
        return self.view.rows(thread_id)

    async def begin(self, text: str, thread_id: str = SUBJECT) -> Turn:
        """Posts a turn."""
        turn = Turn(self.view, thread_id)
        await turn.post(text)
        return turn

    async def say(self, text: str, thread_id: str = SUBJECT) -> list[dict[str, Any]]:
        """A turn from its post to its good end; answers what the model was asked in it."""
        turn = await self.begin(text, thread_id)
        *_, end = await turn.end()
        assert turn.has_told("done"), end
        await turn.settle()
        return [comparable(call) for call in turn.calls]

    async def remember(self, texts: Sequence[str], *thread_ids: str) -> None:
        """Tells each thread the same."""
        for thread_id in thread_ids:
            for text in texts:
                await self.say(text, thread_id)


@asynccontextmanager
async def open_stage(
    redis_url: str, folder: Path, more: More = lambda _: {}, **settings: Any
) -> AsyncGenerator[Stage]:
    """The service on a database in `folder`, ready for turns."""
    with open_workshop() as tools, looking(redis_url) as redis:
        dialogue = Dialogue(more(tools.free))
        async with (
            FakeLlama(dialogue, n_ctx=100_000) as llama,
            run_worker(redis_url, llama.base_url, folder, AGENTS=AGENTS, **settings),
            run_api(redis_url, AGENTS=AGENTS, DEFAULT_AGENT=NAME) as service,
        ):
            # One that is kept and idle may end in the moment in which it is used again.
            service.client.headers["Connection"] = "close"
            while (await service.client.get("/health/ready")).status_code != 200:
                await asyncio.sleep(0.01)
            database = folder / "checkpoints.sqlite"
            yield Stage(View(service, llama, tools, database, redis), dialogue)
