"""Enters turns into the ledger that ended without the worker: cancelled before they began."""

import asyncio
import logging
from functools import partial

import msgspec

from shared.chunks import Cancelled
from shared.lane import Lane
from shared.record import TurnRecord, parse_record
from shared.summary import CancelSummary
from worker.ending import Ending
from worker.insist import insist
from worker.memory import Memory
from worker.settlement import UNUSABLE

AGAIN_S = 5.0
"""When to try again after the database has refused."""

log = logging.getLogger(__name__)

_records = msgspec.json.Decoder(dict[str, str])


class Bookkeeper:
    """Works through the list that Redis keeps of them."""

    def __init__(self, lane: Lane, memory: Memory) -> None:
        self._lane = lane
        self._memory = memory
        self._more = asyncio.Event()

    def wake(self) -> None:
        """There may be something on the list."""
        self._more.set()

    async def keep(self) -> None:
        """Keeps the book for ever."""
        while True:
            await self._more.wait()
            self._more.clear()
            while raw := await insist(self._lane.next_unrecorded):
                await self._enter(raw)
                await insist(partial(self._lane.drop_unrecorded, raw))

    async def _enter(self, raw: bytes) -> None:
        try:
            ending = _end_of(raw)
        except (KeyError, ValueError, msgspec.MsgspecError) as error:
            log.error("A turn that ended cannot be read: %s", type(error).__name__)
            return
        while True:
            try:
                await self._memory.write_down(ending, tell=False)
            except UNUSABLE as error:
                log.error("Turn %s cannot be entered: %s", ending.turn.turn_id, error)
                await asyncio.sleep(AGAIN_S)
            else:
                return


def _end_of(raw: bytes) -> Ending:
    fields = _records.decode(raw)
    flat = [part.encode() for field in fields.items() for part in field]
    turn = parse_record(flat)
    return Ending(turn=turn, chunk=Cancelled(turn_id=turn.turn_id, metadata=_sum_up(turn)))


def _sum_up(turn: TurnRecord) -> CancelSummary:
    waited_s = ((turn.finished_at or turn.created_at) - turn.created_at) / 1000
    return CancelSummary(elapsed_s=waited_s, queued_s=waited_s, rolled_back_messages=0)
