"""What a worker that died has left behind, put in order before the first turn is taken."""

import logging
import time
from typing import Any, cast

from shared import keys
from shared.claims import Claims
from shared.errors import Fenced
from shared.redis import Redis, redis_errors
from worker.conclusion import conclude
from worker.failures import WORKER_LOST
from worker.tally import Tally

log = logging.getLogger(__name__)


async def recover(redis: Redis, claims: Claims, lane: str = keys.LANE) -> None:
    """Ends the turn that was running, and makes arq forget which jobs it had picked up.

    arq would come back to those only after the job's time limit, and let newer turns overtake.
    """
    with redis_errors():
        left = cast(bytes | None, await redis.get(keys.running(lane)))
        if left:
            await _end(redis, claims, left.decode())
        waiting: list[bytes] = await cast(Any, redis).zrange(keys.queue(lane), 0, -1)
        if waiting:
            await redis.delete(*(keys.job_in_progress(turn_id.decode()) for turn_id in waiting))


async def _end(redis: Redis, claims: Claims, turn_id: str) -> None:
    turn = await claims.claim(turn_id)
    if turn:
        elapsed_s = time.time() - turn.created_at / 1000
        chunk = conclude(turn, Tally(), WORKER_LOST, elapsed_s)
        try:
            await claims.finish(turn, chunk, WORKER_LOST)
            log.warning("Turn %s was left running and has ended: worker_lost.", turn_id)
        except Fenced as error:
            log.error("Turn %s could not be ended: %s", turn_id, error)
    names = (keys.job, keys.job_in_progress, keys.job_tries)
    await redis.delete(*(name(turn_id) for name in names))
