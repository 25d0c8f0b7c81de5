"""`python -m worker`: the one process that owns the slot and the checkpoint database.

Exits 2 on a bad setting, 3 when the database cannot be opened, 1 when another worker owns it.
"""

import sys

from worker.stop import Stop


def main() -> int:
    """Runs the worker until it is told to stop; answers the exit code."""
    stop = Stop()
    # Imported only now, as it takes seconds in which the worker may be told to stop.
    from worker.command import run

    return run(stop)


if __name__ == "__main__":
    sys.exit(main())
