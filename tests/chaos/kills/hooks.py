"""Moments inside the worker at which it kills itself: each `prepare`s a worker that was forked.

They are armed by a file, so that the turns before the one in question pass.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any, cast

from aiosqlite import Connection

from shared.claims import Claims
from worker import ledger, rollback
from worker.checkpoints import TurnSaver
from worker.gate import Gate

Armed = Callable[[], bool]
"""Whether it is time."""

Hook = Callable[[Armed], None]


def before_the_claim(armed: Armed) -> None:
    """It has chosen the turn, and has not told Redis."""
    _before(Claims, "claim", lambda *_: armed())


def after_the_fence(armed: Armed) -> None:
    """The thread is fenced, and nothing may be put yet."""
    _before(Gate, "open", lambda *_: armed())


def before_the_input_checkpoint(armed: Armed) -> None:
    """The graph runs, and the database does not have its input."""

    def is_input(*put: Any) -> bool:
        return armed() and put[3]["source"] == "input"

    _before(TurnSaver, "aput", is_input)


def after_the_commit(armed: Armed) -> None:
    """The turn has ended in the database, and only there; it may have told all but its end."""
    _after_commit_of(ledger, "enter", armed)


def after_a_commit_unheard(armed: Armed) -> None:
    """The same, and not one chunk of its run was told, as when Redis is away."""
    publish = Claims.publish

    async def publish_never(*given: Any) -> Any:
        if armed():
            await asyncio.Event().wait()
        return await publish(*given)

    cast(Any, Claims).publish = publish_never
    after_the_commit(armed)


def before_the_end_is_told(armed: Armed) -> None:
    """All is told but the turn's end."""
    _before(Claims, "finish", lambda *_: armed())


def in_a_restore(armed: Armed) -> None:
    """The thread is restored in a transaction that is not committed."""
    restore = rollback.restore

    async def restore_and_die(*given: Any) -> None:
        await restore(*given)
        if armed():
            _die()

    rollback.restore = restore_and_die


def after_a_restore(armed: Armed) -> None:
    """The thread is restored, and Redis does not know."""
    _after_commit_of(rollback, "restore", armed)


def _before(owner: type, name: str, is_it: Callable[..., bool]) -> None:
    original = getattr(owner, name)

    def die_first(*given: Any, **named: Any) -> Any:
        if is_it(*given):
            _die()
        return original(*given, **named)

    setattr(owner, name, die_first)


def _after_commit_of(owner: Any, name: str, armed: Armed) -> None:
    original, commit = getattr(owner, name), Connection.commit
    done: list[str] = []

    async def take_note(*given: Any) -> Any:
        if armed():
            done.append(name)
        return await original(*given)

    async def commit_and_die(self: Connection) -> None:
        await commit(self)
        if done:
            _die()

    setattr(owner, name, take_note)
    Connection.commit = commit_and_die


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
