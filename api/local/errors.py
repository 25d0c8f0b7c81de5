"""Why `turnkeeper up` is not, or no longer, up.

TurnkeeperError
├── CannotStart    something is missing or taken; nothing was started
└── PartDied       one of the processes has ended by itself; the others were stopped
"""

from shared.errors import TurnkeeperError


class CannotStart(TurnkeeperError):
    """What is missing or taken, and what to do about it."""

    code = "cannot_start"


class PartDied(TurnkeeperError):
    """Which process has ended, how, and the last that it said."""

    code = "part_died"
