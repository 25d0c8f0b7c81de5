"""`python -m api.local.tether PARENT COMMAND…`: becomes COMMAND, which ends when PARENT dies.

However `turnkeeper up` dies, its processes are not left behind: Linux ends them by SIGKILL, which
none of them can miss, as a worker that an agent blocks would SIGTERM. Other systems know nothing
like it. It is a program of its own because it must run between fork and exec, where a function in
the parent is not safe.
"""

import ctypes
import os
import signal
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1


def tethered(command: list[str]) -> list[str]:
    """The command that starts `command` with this process as its parent."""
    return [sys.executable, "-P", "-m", __name__, str(os.getpid()), *command]


def main(parent: int, command: list[str]) -> NoReturn:
    """Ends at once if the parent is dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("its parent has died")
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
