"""What a worker that died has left behind, put in order before the first turn is taken."""

import logging
import time

from shared.claims import Claims
from shared.errors import Fenced
from worker.conclusion import conclude
from worker.failures import WORKER_LOST
from worker.tally import Tally

log = logging.getLogger(__name__)


async def recover(claims: Claims) -> None:
    """Ends the turn that was running."""
    left = await claims.left_running()
    turn = await claims.claim(left) if left else None
    if turn is None:
        return
    chunk = conclude(turn, Tally(), WORKER_LOST, turn.age_s(time.time()))
    try:
        await claims.finish(turn, chunk, WORKER_LOST)
    except Fenced as error:
        log.error("Turn %s could not be ended: %s", turn.turn_id, error)
    else:
        log.warning("Turn %s was left running and has ended: worker_lost.", turn.turn_id)
