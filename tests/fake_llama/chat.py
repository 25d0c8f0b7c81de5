"""One chat request, from the check of its body to the end of its answer."""

from tests.fake_llama import wire
from tests.fake_llama.answer import Answer, Streamed, Whole
from tests.fake_llama.connection import Closed, Connection
from tests.fake_llama.generation import Generation, StreamFailed
from tests.fake_llama.refusal import Refusal, check, check_context, parse
from tests.fake_llama.script import Call, Choose
from tests.fake_llama.slot import Slot
from tests.fake_llama.tokens import prompt_of


class Chat:
    """Every way a chat request can end is named in `run`."""

    def __init__(
        self, call: Call, connection: Connection, slot: Slot, choose: Choose, ping_interval: float
    ) -> None:
        self._call = call
        self._connection = connection
        self._slot = slot
        self._choose = choose
        self._ping_interval = ping_interval

    async def run(self, raw: bytes) -> None:
        """Raises Closed when the connection is over, too."""
        try:
            await self._complete(raw)
        except Refusal as refusal:
            self._call.status = refusal.status
            self._call.end("error")
            body = wire.refused(refusal.status, refusal.error)
            await self._connection.respond(refusal.status, wire.to_json(body))
        except Closed as closed:
            self._call.end(closed.state)
            raise

    async def _complete(self, raw: bytes) -> None:
        self._call.body = parse(raw)
        check(self._call.body)
        answer = self._answer()
        try:
            async with self._slot.held_by(self._call, self._connection):
                reason = await self._generate(answer)
                self._call.end("done")
            await answer.finish(reason)
        except StreamFailed as failure:
            self._call.end("error")
            await answer.fail(failure.error)

    async def _generate(self, answer: Answer) -> str:
        call, slot = self._call, self._slot
        reply = self._choose(call.body)
        prompt = prompt_of(call.body, reply.prompt_tokens)
        call.begin(reply, len(prompt))
        if reply.error is not None:
            raise Refusal(*reply.error)
        check_context(len(prompt), slot.n_ctx)
        interval = call.body.get("sse_ping_interval", self._ping_interval)
        return await Generation(call, reply, slot, self._connection, answer, interval).run(prompt)

    def _answer(self) -> Answer:
        wanted = Streamed if self._call.body.get("stream") else Whole
        return wanted(self._connection, self._call)
