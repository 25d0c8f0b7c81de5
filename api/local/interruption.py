"""Ctrl-C, SIGTERM and a closed terminal, however often they come."""

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

from shared.signals import STOP


class Interruption:
    """Takes the signals from now on to the end of the process."""

    def __init__(self) -> None:
        # Not SystemExit, which might be caught by what is just imported.
        self._answer: Callable[[], object] = partial(os._exit, 0)
        left_running = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # as nohup asks
        self._signals = STOP if left_running else (*STOP, signal.SIGHUP)
        for number in self._signals:
            signal.signal(number, self._handle)

    @contextmanager
    def sets(self, event: asyncio.Event) -> Generator[None]:
        """A signal sets the event in place of ending the process; after that it does nothing."""
        loop = asyncio.get_running_loop()
        self._answer = partial(loop.call_soon_threadsafe, event.set)
        try:
            yield
        finally:
            for number in self._signals:
                signal.signal(number, signal.SIG_IGN)

    def _handle(self, *_: object) -> None:
        self._answer()
