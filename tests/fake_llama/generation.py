"""What the slot does for one call: prefill by the batch, decode by the token, fail as scripted."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from tests.fake_llama.answer import Answer
from tests.fake_llama.connection import Closed, Connection
from tests.fake_llama.script import Body, Call, Reply
from tests.fake_llama.slot import Slot
from tests.fake_llama.tokens import begun_by, steps_of, token_limit


class StreamFailed(Exception):
    """The script ends the answer with the error `error`."""

    def __init__(self, error: Body) -> None:
        super().__init__(error)
        self.error = error


class Generation:
    """One call in the slot."""

    def __init__(
        self,
        call: Call,
        reply: Reply,
        slot: Slot,
        connection: Connection,
        answer: Answer,
        ping_interval: float,
    ) -> None:
        self._call = call
        self._reply = reply
        self._slot = slot
        self._connection = connection
        self._answer = answer
        self._ping_interval = ping_interval
        self._n_deltas = 0

    async def run(self, prompt: list[str]) -> str:
        """Returns the finish reason; raises Closed or StreamFailed."""
        self._load(prompt)
        self._call.enter("prefill")
        await self._answer.begin()
        await self._prefill(prompt)
        self._call.enter("decode")
        return await self._decode()

    def _load(self, prompt: list[str]) -> None:
        """At least one token is left to prefill."""
        n_cached = self._slot.count_cached(prompt)
        if not self._call.body.get("cache_prompt", True):
            n_cached = 0
        if self._reply.cached is not None:
            n_cached = self._reply.cached
        self._call.n_cached = min(n_cached, len(prompt) - 1)
        self._slot.tokens = prompt[: self._call.n_cached]

    async def _prefill(self, prompt: list[str]) -> None:
        """A batch is in the slot from its start and runs to its end, whether or not it is read."""
        await self._answer.progress()
        if self._reply.gate is not None:
            await self._pinging(self._connection.unless_gone(self._reply.gate.wait))
        n_batches = 0
        while batch := prompt[len(self._slot.tokens) :][: self._slot.n_batch]:
            self._slot.tokens += batch
            if self._reply.stall_after == n_batches:
                await self._linger()
            await self._spend(len(batch) / self._reply.prefill_tps)
            self._call.prefilled(len(batch))
            self._connection.check()
            await self._answer.progress()
            n_batches += 1

    async def _decode(self) -> str:
        try:
            return await self._speak()
        finally:
            del self._slot.tokens[self._call.n_in_slot :]

    async def _speak(self) -> str:
        room = self._room()
        for step in steps_of(self._reply, begun_by(self._call.body)):
            await self._misbehave()
            if self._call.n_decoded == room:
                return "length"
            await self._spend(1 / self._reply.decode_tps)
            self._slot.tokens.append(step.piece)
            self._call.decoded()
            self._connection.check()
            self._n_deltas += step.delta is not None
            if step.whole:
                await self._answer.token(step.delta)
        return self._reply.finish or ("tool_calls" if self._reply.tool_calls else "stop")

    def _room(self) -> int:
        room = self._slot.n_ctx - self._call.n_prompt
        limit = token_limit(self._call.body)
        return room if limit < 0 else min(limit, room)

    async def _misbehave(self) -> None:
        """Does what the script wants to happen after the deltas sent so far."""
        reply = self._reply
        if reply.die_after == self._n_deltas:
            self._connection.reset()
            raise Closed("died")
        if reply.eof_after == self._n_deltas:
            raise Closed("died")
        if reply.hang_after == self._n_deltas:
            await self._linger()
        if reply.stream_error is not None and reply.stream_error[0] == self._n_deltas:
            raise StreamFailed(reply.stream_error[1])

    async def _linger(self) -> None:
        """What is computed ends when the script releases it, or when the client leaves."""
        release = self._reply.release or asyncio.Event()
        with contextlib.suppress(Closed):
            await self._pinging(self._connection.unless_gone(release.wait))

    async def _spend(self, seconds: float) -> None:
        await self._pinging(asyncio.sleep(seconds))

    async def _pinging(self, wait: Coroutine[Any, Any, None]) -> None:
        """Waits for `wait`, with a ping after every interval of silence."""
        waiting = asyncio.create_task(wait)
        try:
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=self._ping_interval)
                if not waiting.done():
                    await self._answer.ping()
            waiting.result()
        finally:
            waiting.cancel()
            await asyncio.wait({waiting})
