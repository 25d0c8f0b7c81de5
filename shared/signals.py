"""The signals that tell a process to stop, at its very beginning and its very end."""

import os
import signal

STOP = (signal.SIGINT, signal.SIGTERM)


def end_on_stop_signals() -> None:
    """For a process that has begun nothing yet: told to stop it ends, and all is in order.

    Until the event loop takes the signals. Whoever started it may have had them wait for this.
    """
    for number in STOP:
        signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)


def _end(*_: object) -> None:
    os._exit(0)  # not SystemExit, which might be caught by what is just imported


def ignore_stop_signals() -> None:
    """For a process that has stopped in order: one more signal must not end it in another way.

    With its loop asyncio's handlers go, and with the interpreter Python's own.
    """
    # Imported only here: a process that wants to hear the signals at once would wait for it.
    import asyncio

    loop = asyncio.get_running_loop()
    # Removing a handler brings the default back for an instant, in which none may come.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    for number in STOP:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)
