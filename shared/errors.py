"""What can go wrong, in our own words.

TurnkeeperError
├── SettingsError        a setting cannot be used
├── RedisAway            Redis did not answer
├── Refused              a turn that was not accepted
│   ├── QueueFull
│   ├── AgentMismatch
│   ├── IdempotencyConflict
│   └── Quarantined
├── UnknownTurn
├── UnknownThread
├── ThreadRunning        a turn of it is at work
├── ThreadUnreadable     its agent cannot read it
├── Fenced               another claim owns the turn now
├── WorkerLost           no heartbeat of a worker
├── WorkerBusy           no answer of the worker in time
└── WorkerFailed         the worker could not do what it was asked
"""


class TurnkeeperError(Exception):
    """Something went wrong that a person should be told, in a sentence of plain words."""

    code = "error"


class SettingsError(TurnkeeperError):
    """One line that names the environment variable and what is wrong with it."""

    code = "bad_setting"


class RedisAway(TurnkeeperError):
    """Redis did not answer, or refused; what it was asked to do may have been done."""

    code = "redis_away"


class Refused(TurnkeeperError):
    """A turn was not accepted; nothing was stored."""


class QueueFull(Refused):
    """The queue holds as many waiting turns as MAX_QUEUE allows."""

    code = "queue_full"


class AgentMismatch(Refused):
    """The thread belongs to another agent."""

    code = "agent_mismatch"


class IdempotencyConflict(Refused):
    """The idempotency key was used before with another body."""

    code = "idempotency_conflict"


class Quarantined(Refused):
    """The thread could not be restored, and takes no turns until it is."""

    code = "quarantined"


class UnknownTurn(TurnkeeperError):
    """No turn of this id is known."""

    code = "unknown_turn"


class UnknownThread(TurnkeeperError):
    """No thread of this id is known."""

    code = "unknown_thread"


class ThreadRunning(TurnkeeperError):
    """A turn of the thread is at work, or is being undone."""

    code = "running"


class ThreadUnreadable(TurnkeeperError):
    """The thread's agent is not there any more, or fails on its own state."""

    code = "unreadable"


class Fenced(TurnkeeperError):
    """Another claim owns the turn, or it has ended: this one may write no more."""

    code = "fenced"


class WorkerLost(TurnkeeperError):
    """No worker is alive."""

    code = "worker_lost"


class WorkerBusy(TurnkeeperError):
    """The worker did not answer in time."""

    code = "worker_busy"


class WorkerFailed(TurnkeeperError):
    """The worker could not do what it was asked; its database failed."""

    code = "worker_failed"
