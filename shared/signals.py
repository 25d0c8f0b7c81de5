"""The signals that tell a process to stop, at its very end."""

import signal

STOP = (signal.SIGINT, signal.SIGTERM)


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
