"""A worker that can be killed, and the API, the model and the databases that stay."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.chaos import crew
from tests.chaos.crew import Crew
from tests.chaos.held import Held, hold_all
from tests.chaos.kills.hooks import Hook
from tests.chaos.kills.points import Point
from tests.fake_llama import FakeLlama
from tests.forked import do_nothing
from tests.redis_seen import looking
from tests.service import run_api
from tests.traceless.dialogue import Dialogue, comparable
from tests.traceless.rows import Rows
from tests.traceless.turn import Turn
from tests.traceless.view import View
from tests.zygote import Forked, ended, fork_worker

SUBJECT = "subject"
CONTROL = "control"

Requests = list[dict[str, Any]]


@dataclass(frozen=True)
class CrewView(View):
    """`tools`: as they are seen from outside."""

    tools: Crew


class Scene:
    """`environment`: of its workers."""

    def __init__(
        self, view: CrewView, folder: Path, hold: asyncio.Event, environment: dict[str, str]
    ) -> None:
        self.view = view
        self.crew = view.tools
        self._folder = folder
        self._hold = hold
        self._armed = folder / "armed"
        self._environment = environment

    @asynccontextmanager
    async def worker(self, hook: Hook | None = None) -> AsyncGenerator[Forked]:
        """One that has ended at the end; what it said is shown with a failure."""
        prepare = partial(hook, self._armed.exists) if hook else do_nothing
        log = self._folder / "worker.log"
        async with ended(await fork_worker(log, self._environment, prepare)) as worker:
            yield worker

    def hold(self) -> None:
        """From now on what can be held is, and a hook is armed; no tool has run yet."""
        self.crew.forget()
        self._hold.clear()
        self.crew.hold()
        self._armed.touch()

    def let_go(self) -> None:
        """What is held goes on, and nothing more will be."""
        self._hold.set()
        self.crew.let_go()
        self._armed.unlink(missing_ok=True)

    def rows(self, thread_id: str = SUBJECT) -> Rows:
        """The thread as the database has it."""
        return self.view.rows(thread_id)

    async def begin(self, text: str, thread_id: str = SUBJECT) -> Turn:
        """Posts a turn."""
        turn = Turn(self.view, thread_id)
        await turn.post(text)
        return turn

    async def say(self, text: str, thread_id: str = SUBJECT) -> tuple[Held, Requests]:
        """A turn from its post to its good end: what a follower holds, what the model was asked."""
        turn = await self.begin(text, thread_id)
        held = hold_all(await turn.end())
        assert held.end == "done", held
        return held, [comparable(call) for call in turn.calls]

    async def remember(self, texts: Sequence[str]) -> None:
        """Tells both threads the same, once there is a worker."""
        while (await self.view.service.client.get("/health/ready")).status_code != 200:
            await asyncio.sleep(0.01)
        for thread_id in (SUBJECT, CONTROL):
            for text in texts:
                await self.say(text, thread_id)


@asynccontextmanager
async def open_scene(
    redis_url: str, folder: Path, point: Point, **environment: str
) -> AsyncGenerator[Scene]:
    """All but the worker; nothing is held yet."""
    hold, tools = asyncio.Event(), Crew(folder)
    async with (
        FakeLlama(Dialogue(point.dialogue(hold)), n_ctx=100_000) as llama,
        run_api(redis_url, AGENTS=crew.AGENTS, DEFAULT_AGENT=crew.NAME) as service,
    ):
        with looking(redis_url) as redis:
            view = CrewView(service, llama, tools, folder / "checkpoints.sqlite", redis)
            shared = {"REDIS_URL": redis_url, "LLAMA_BASE_URL": llama.base_url}
            own = {"CHECKPOINT_DB": str(view.database), "LOG_LEVEL": "WARNING"}
            agent = {"AGENTS": crew.AGENTS, crew.FOLDER: str(folder)}
            scene = Scene(view, folder, hold, {**shared, **own, **agent, **environment})
            scene.let_go()
            yield scene
