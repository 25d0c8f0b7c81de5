"""What keeps a worker from starting, or from its work.

TurnkeeperError
├── CannotStart
│   ├── DatabaseTaken      another worker owns it
│   ├── DatabaseUnusable   it cannot be opened
│   ├── QueueTaken         another worker, with another database, serves this queue
│   └── SaverTooOld        langgraph-checkpoint-sqlite would lose what it has stored
├── NotNow                 a turn is to be tried again
└── BrokenOff              a turn waits for the next worker
"""

from typing import ClassVar

from shared.errors import TurnkeeperError


class CannotStart(TurnkeeperError):
    """The worker ends at once with `exit_code`."""

    exit_code: ClassVar[int] = 1


class DatabaseTaken(CannotStart):
    """Another worker owns the database."""

    code = "database_taken"


class QueueTaken(CannotStart):
    """Another worker, with another database, serves this queue."""

    code = "queue_taken"


class DatabaseUnusable(CannotStart):
    """The database cannot be opened."""

    code = "database_unusable"
    exit_code = 3


class SaverTooOld(CannotStart):
    """The installed langgraph-checkpoint-sqlite would silently lose what it has stored."""

    code = "saver_too_old"


class NotNow(TurnkeeperError):
    """The turn that was taken cannot be worked on at this moment."""

    code = "not_now"


class BrokenOff(TurnkeeperError):
    """The turn that was taken is in the queue again, and the next worker goes on with it."""

    code = "broken_off"
