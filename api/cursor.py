"""From where a client wants to go on."""

import re

from api.errors import BadCursor, LogGone, NothingLeft
from shared.record import TurnRecord

CURSOR = re.compile(r"[0-9]{1,19}")


def parse_cursor(last_event_id: str | None, after: str | None) -> int:
    """The number of the last chunk that the client has, 0 for none; raises BadCursor."""
    value = last_event_id if last_event_id is not None else after
    if value is None:
        return 0
    if not CURSOR.fullmatch(value):
        raise BadCursor("Last-Event-ID or after is not the number of a chunk.")
    return int(value)


def is_ahead(turn: TurnRecord, cursor: int) -> bool:
    """The turn has started, and its log is shorter than it was: Redis may have lost the end of it,
    which a worker then makes good.
    """
    return bool(turn.started_at) and not turn.ended and cursor > turn.seq


def check_cursor(turn: TurnRecord, cursor: int, *, has_log: bool) -> None:
    """Raises NothingLeft or LogGone when there is nothing to send after the cursor."""
    if turn.ended and cursor >= turn.seq:
        raise NothingLeft
    if cursor > turn.seq:
        raise LogGone("The turn has no chunk of this number yet.", turn.thread_id)
    if not has_log:
        raise LogGone("The chunks of this turn are no longer kept.", turn.thread_id)
