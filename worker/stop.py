"""How the worker is told to stop, and that it does, whatever an agent of its does.

Told once, it ends in order; what is not in order within STOP_S is left to the next start, which
finds it as after a crash. Told again, it does nothing else.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial

from shared.signals import STOP

STOP_S = 8.0
FAREWELL_S = 1.2
"""Together less than the 10 s in which the worker promises to stop."""

Call = Callable[[], object]


class Stop:
    """Hears SIGINT and SIGTERM, from now on to the end of the process.

    In a thread of its own: the main thread may be inside of an agent's code, which gives the event
    loop no turn, or of a library's, which gives Python none.
    """

    def __init__(self) -> None:
        self._exit_code = 0
        # Not SystemExit, which might be caught by what is just imported.
        self._begin: Call = partial(os._exit, 0)
        self._farewell: Call = _do_nothing
        self._heard, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self.take_over()
        for number in STOP:
            signal.signal(number, self._tell)
        # Whoever started this process may have had them wait until somebody hears them.
        _take()
        os.register_at_fork(before=_hold, after_in_parent=_take, after_in_child=_hear_nothing)
        threading.Thread(target=self._watch, name="stop", daemon=True).start()

    def take_over(self) -> None:
        """Hears them at once, and not the event loop that has just begun to run."""
        signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)

    @contextmanager
    def in_order(self, begin: Call, farewell: Call) -> Generator[None]:
        """From here on the first signal calls `begin`, in another thread; before, it ends all.

        When the end takes too long, `farewell` is called, likewise, for what can be said quickly.
        """
        self._begin, self._farewell = begin, farewell
        try:
            yield
        finally:
            self._begin = self._farewell = _do_nothing

    def end(self, exit_code: int) -> None:
        """The process now ends by itself, in good time, and not in another way."""
        self._exit_code, self._begin = exit_code, _do_nothing
        for number in STOP:
            signal.signal(number, signal.SIG_IGN)
        self._tell(signal.SIGTERM)

    def _tell(self, number: int, *_: object) -> None:
        with suppress(BlockingIOError):  # told more than often enough
            os.write(self._told, bytes([number]))

    def _watch(self) -> None:
        while not set(STOP).intersection(os.read(self._heard, 1)):
            pass  # a signal that an agent listens to
        with suppress(RuntimeError):  # the event loop has just been closed
            self._begin()
        time.sleep(STOP_S)
        try:
            # Who does not stop may hold what is needed for it, if only the lock of the log.
            last = threading.Thread(target=self._farewell, daemon=True)
            last.start()
            last.join(FAREWELL_S)
        finally:
            os._exit(self._exit_code)


def _hold() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)


def _take() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)


def _hear_nothing() -> None:
    """A process that an agent forks is not the worker, and a signal to it is not for the worker."""
    signal.set_wakeup_fd(-1)
    for number in STOP:
        signal.signal(number, signal.SIG_DFL)
    _take()


def _do_nothing() -> None: ...
