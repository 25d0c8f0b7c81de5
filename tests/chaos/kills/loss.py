"""A turn whose worker was taken from it, and what it should have come to."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from shared.chunks import Chunk, Done, Rewind
from tests.chaos.held import Held, figures_differ, hold_all
from tests.chaos.kills.points import DO, Point
from tests.chaos.kills.scene import CONTROL, Requests, Scene
from tests.traceless.dialogue import GO_ON, LATER, PLAN, comparable
from tests.traceless.rows import changes, count_by_kind
from tests.traceless.turn import Turn
from tests.zygote import Forked

STOP_S = 10
"""An orderly stop takes no longer."""


class Loss(NamedTuple):
    """`undisturbed`: what a follower holds of the same turn on the other thread, where nothing
    happened to it; `requests`: what the model was asked in that one. `n_asked`: how often it was
    asked in this one before.
    """

    scene: Scene
    point: Point
    turn: Turn
    undisturbed: Held
    requests: Requests
    n_asked: int
    exit_code: int


Strike = Callable[[Forked, Turn], Awaitable[None]]
"""What ends a worker at the point, if its hook does not."""


async def kill(worker: Forked, _: Turn) -> None:
    worker.send(signal.SIGKILL)


async def stop(worker: Forked, _: Turn) -> None:
    """Raises TimeoutError when that is not done in time."""
    worker.send(signal.SIGTERM)
    async with asyncio.timeout(STOP_S):
        await worker.wait()


async def cancel(_: Forked, turn: Turn) -> None:
    """The worker has a hook in what comes of it."""
    await store_cancel(turn)


async def store_cancel(turn: Turn) -> None:
    """Asks for it, and does not wait for what comes of it."""
    answer = await turn.view.service.client.post(f"/turns/{turn.turn_id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelling"), answer.text


async def lose(scene: Scene, point: Point, strike: Strike = kill) -> Loss:
    """Begins the turn, and ends its worker at the point. What was held still is."""
    async with scene.worker(point.hook) as worker:
        await scene.remember([PLAN])
        undisturbed, requests = await scene.say(DO, CONTROL)
        scene.hold()
        turn = await scene.begin(DO)
        if point.reached:
            await turn.reach(point.is_reached)
            await strike(worker, turn)
        exit_code = await worker.wait()
    scene.crew.forget()
    return Loss(scene, point, turn, undisturbed, requests, len(turn.calls), exit_code)


async def check_whole(loss: Loss) -> list[Chunk]:
    """The turn comes to its good end as if nothing had been, and no work was done twice."""
    seen = await loss.turn.end()
    held, crew = hold_all(seen), loss.scene.crew
    assert held.answer == loss.undisturbed.answer
    asked = [comparable(call) for call in loss.turn.calls[loss.n_asked :]]
    assert asked == loss.requests[loss.point.answered :]
    assert sorted(crew.begun) == sorted(loss.point.again)
    assert isinstance(seen[-1], Done)
    assert not figures_differ(held, seen[-1])
    return seen


async def check_undone(loss: Loss, asked_again: int = 0) -> Chunk:
    """The thread is what it was before the turn, row for row, and takes the next; its end."""
    *_, end = await loss.turn.end()
    assert len(loss.turn.calls) == loss.n_asked + asked_again
    assert changes(loss.turn.rows_before, loss.scene.rows()) == []
    await loss.scene.say(GO_ON)
    return end


async def check_later(scene: Scene) -> None:
    """The thread is the same as the other one, as far as the model and the database can tell."""
    for text in LATER:
        _, asked = await scene.say(text)
        assert asked == (await scene.say(text, CONTROL))[1]
    assert count_by_kind(scene.rows()) == count_by_kind(scene.rows(CONTROL))


def rewinds(seen: list[Chunk]) -> list[str]:
    """Why the stream went back, each time."""
    return [chunk.metadata.reason for chunk in seen if isinstance(chunk, Rewind)]
