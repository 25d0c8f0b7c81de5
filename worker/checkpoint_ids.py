"""New checkpoints sort above those that a thread has, whatever the clock says.

LangGraph finds a thread's latest checkpoint by the order of ids, and its ids rise only within one
process: after a restart with a clock that stepped back, a turn would be written below the head, and
the thread would forget it.
"""

from typing import Any, cast

from langgraph.checkpoint.base import id as ids

# LangGraph's memory of its last id has no public name. This file may go once LangGraph itself
# continues above the head.
_private = cast(Any, ids)

# The last moment that 64 bits of nanoseconds can say (in 2262), in an id's own unit of 100 ns.
# Ids have room for more, but behind the very last of them come the lowest again.
_LAST = (2**63 - 1) // 100 + 0x01B21DD213814000


def continue_above(checkpoint_id: str | None) -> None:
    """Makes all ids to come in this process sort above this one; never moves them back.

    What LangGraph cannot have made changes nothing and is no error: other texts may well sort below
    the ids to come, and where they do not, it is the saver that must refuse to write.
    """
    timestamp = _read_timestamp(checkpoint_id)
    # The next id's timestamp is above this one: at the same, random bits would decide.
    if timestamp and timestamp > (_private._last_v6_timestamp or 0):
        _private._last_v6_timestamp = timestamp


def _read_timestamp(checkpoint_id: str | None) -> int | None:
    try:
        found = ids.UUID(hex=checkpoint_id or "")
    except ValueError:
        return None
    return found.time if found.version == 6 and found.time <= _LAST else None
