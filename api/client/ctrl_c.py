"""What Ctrl-C does while a turn is followed."""

import asyncio
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

BOUNCE_S = 0.3
"""One more within this time is the same one: a key bounces, a wrapper passes on what its child has
heard already; and who leaves in between has not told the server what was wanted.
"""


@contextmanager
def answering_ctrl_c(first: Callable[[], object] | None = None) -> Generator[None]:
    """A first Ctrl-C calls `first` in the running loop, if it is given; the next one raises
    KeyboardInterrupt, wherever the program is, and one more ends the process. After the block it
    does nothing any more.
    """
    loop = asyncio.get_running_loop()
    pressed_at = -BOUNCE_S

    def answer(*_: object) -> None:
        nonlocal first, pressed_at
        if time.monotonic() - pressed_at < BOUNCE_S:
            return
        pressed_at = time.monotonic()
        if first is None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(first)
        first = None

    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # as a shell asks of what it runs in the background
        yield
        return
    signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is answer:
            ignore_ctrl_c()


def ignore_ctrl_c() -> None:
    """From now on it does nothing: the turn has ended, and the exit code shall say how."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
