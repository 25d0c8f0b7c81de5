"""`turnkeeper`, from its first instant."""

import signal
import sys

from shared.signals import STOP


def main() -> None:
    """Runs the command line."""
    # Before what takes long to import, out of which a KeyboardInterrupt would tell nobody anything;
    # nothing has been asked yet. A command that has something to end in order says so itself.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1:2] in (["worker"], ["api"]):
        # They wait for the process that this one becomes, which knows how to stop.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    from api.commands import commands

    commands()


if __name__ == "__main__":
    main()
