"""Every name in Redis.

A lane is one slot with its own queue, worker and database; there is one lane today, and what
belongs to a lane takes it as a parameter.
"""

LANE = "main"
PREFIX = "turnkeeper"
TURN_PREFIX = f"{PREFIX}:turn:"


def queue(lane: str = LANE) -> str:
    """Sorted set of turn ids by time of acceptance; the running one is still in it."""
    return f"{PREFIX}:{lane}:queue"


def running(lane: str = LANE) -> str:
    """String: the id of the turn that holds the slot."""
    return f"{PREFIX}:{lane}:running"


def control(lane: str = LANE) -> str:
    """Channel to the worker: `wake`, `cancel <turn id>`, `unrecorded`."""
    return f"{PREFIX}:{lane}:control"


def worker(lane: str = LANE) -> str:
    """String with a short TTL: the living worker's heartbeat."""
    return f"{PREFIX}:{lane}:worker"


def requests(lane: str = LANE) -> str:
    """List: ids of the API's questions to the worker."""
    return f"{PREFIX}:{lane}:requests"


def question(request_id: str) -> str:
    """String with a short TTL: the question, as long as somebody waits for its answer."""
    return f"{PREFIX}:question:{request_id}"


def reply(request_id: str) -> str:
    """List with a short TTL: the worker's one answer."""
    return f"{PREFIX}:reply:{request_id}"


def quarantined(lane: str = LANE) -> str:
    """Set: threads that could not be restored and take no turns."""
    return f"{PREFIX}:{lane}:quarantined"


def unrecorded(lane: str = LANE) -> str:
    """List: turns that ended without the worker, for its ledger; each a JSON object of texts."""
    return f"{PREFIX}:{lane}:unrecorded"


def known(lane: str = LANE) -> str:
    """String: the mark that the worker has given Redis, and whether it has told it all it must."""
    return f"{PREFIX}:{lane}:known"


def turn(turn_id: str) -> str:
    """Hash: the turn's record."""
    return f"{TURN_PREFIX}{turn_id}"


def log(turn_id: str) -> str:
    """Stream: the turn's chunks, entry id `<seq>-0`."""
    return f"{PREFIX}:log:{turn_id}"


def channel(turn_id: str) -> str:
    """Channel: the turn's chunks as they come."""
    return f"{PREFIX}:chunks:{turn_id}"


def channel_turn(name: str) -> str:
    """The turn id of a channel's name."""
    return name.rpartition(":")[2]


def thread(thread_id: str) -> str:
    """Hash: what admission must know of a thread."""
    return f"{PREFIX}:thread:{thread_id}"


def idempotency(key: str) -> str:
    """String `<turn id> <body hash>`."""
    return f"{PREFIX}:idempotency:{key}"


def job(turn_id: str) -> str:
    """String: arq's own record of the job (its prefix, checked in tests/test_jobs.py)."""
    return f"arq:job:{turn_id}"


def job_tries(turn_id: str) -> str:
    """String: arq's count of pick-ups."""
    return f"arq:retry:{turn_id}"
