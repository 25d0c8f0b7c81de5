"""A turn followed in a terminal: what is shown of it, what Ctrl-C does to it, how it exits."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any, NoReturn

import click

from api.client.canceller import open_canceller
from api.client.ctrl_c import answering_ctrl_c, ignore_ctrl_c
from api.client.event import Event
from api.client.terminal import say
from api.client.transcript import Transcript
from api.client.turn_stream import TurnStream
from api.client.turnkeeper import TurnkeeperClient
from shared.reasons import HEAD

FAILED = 1
INTERRUPTED = 130
EXIT_CODES = {"done": 0, "error": FAILED, "cancelled": 2, "approval": 4}
"""By the type of the last chunk."""

Client = AbstractAsyncContextManager[TurnkeeperClient]


class Viewer:
    """Shows one turn to its end and exits by it."""

    def __init__(self, begin: Callable[[TurnkeeperClient], TurnStream], *, as_json: bool) -> None:
        self._begin = begin
        self._as_json = as_json
        self._transcript = Transcript(sys.stdout, sys.stderr)
        self._turn: TurnStream | None = None
        self._last: Event | None = None
        self._promised = False

    def follow(self, client: Client) -> NoReturn:
        """A turn of whomever: Ctrl-C leaves it as it is."""

        async def watch() -> None:
            async with client as opened:
                self._turn = self._begin(opened)
                with answering_ctrl_c():
                    await self._show(self._turn)

        self._run(watch())

    def attend(self, client: Client, cancel_after_s: float | None = None) -> NoReturn:
        """A turn of one's own: Ctrl-C cancels it, and a second one leaves it."""

        self._promised = cancel_after_s is not None

        async def watch() -> None:
            async with client as opened:
                turn = self._turn = self._begin(opened)
                note = self._transcript.note
                async with open_canceller(opened, turn, note, cancel_after_s) as canceller:
                    with answering_ctrl_c(canceller.want):
                        await self._show(turn)

        self._run(watch())

    async def _show(self, turn: TurnStream) -> None:
        show = _print_json if self._as_json else self._transcript.show
        async with aclosing(turn.read(tell=self._transcript.note)) as events:
            async for event in events:
                self._last = event
                if event.completed:
                    ignore_ctrl_c()
                try:
                    show(event)
                except BrokenPipeError:
                    _let_stdout_go()
                    if not self._promised:
                        raise

    def _run(self, watching: Coroutine[Any, Any, None]) -> NoReturn:
        try:
            asyncio.run(watching)
        except KeyboardInterrupt:
            if not (self._last and self._last.completed):
                self._leave(INTERRUPTED)
        except BrokenPipeError:
            self._leave(FAILED)
        finally:
            self._transcript.end_line()
        self._exit()

    def _leave(self, exit_code: int) -> NoReturn:
        self._transcript.end_line()
        if self._turn and not (self._last and self._last.completed):
            say(f"{HEAD}{self._turn.whereabouts}")
        sys.exit(exit_code)

    def _exit(self) -> NoReturn:
        if self._turn and self._turn.thread_id and not self._as_json:
            self._transcript.note(f"thread {self._turn.thread_id}")
        last = self._last.type if self._last else ""
        if last not in EXIT_CODES:
            say(f"{HEAD}the turn has ended, and this program cannot tell how")
        sys.exit(EXIT_CODES.get(last, FAILED))


def _let_stdout_go() -> None:
    """Nobody reads it any more: what is still written goes nowhere."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _print_json(event: Event) -> None:
    # A newline between JSON's tokens, which is the only place for one, means no more than a space.
    click.echo(event.raw.replace("\n", " ").encode())
