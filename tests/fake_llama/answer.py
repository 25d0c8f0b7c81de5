"""The two ways to answer: a stream of events, or one JSON body at the end."""

from tests.fake_llama import wire
from tests.fake_llama.connection import Connection
from tests.fake_llama.script import Body, Call


class Streamed:
    """Every result of the slot is one HTTP chunk, which may hold two events."""

    def __init__(self, connection: Connection, call: Call) -> None:
        self._connection = connection
        self._call = call
        self._id = f"chatcmpl-{wire.random_name()}"

    async def begin(self) -> None:
        self._call.status = 200
        await self._connection.begin_stream()

    async def progress(self) -> None:
        if self._call.body.get("return_progress"):
            report = self._token_timings() | {"prompt_progress": wire.progress(self._call)}
            await self._send(self._chunk([wire.choice(wire.ROLE)], **report))

    async def token(self, delta: Body | None) -> None:
        """The role goes out with the first token, also when that one has no text."""
        events: list[Body] = []
        if self._call.n_decoded == 1:
            events.append(self._chunk([wire.choice(wire.ROLE)]))
        if delta is not None:
            events.append(self._chunk([wire.choice(delta)], **self._token_timings()))
        if events:
            await self._send(*events)

    async def ping(self) -> None:
        if not self._connection.gone:
            await self._connection.write_chunk(wire.PING)

    async def fail(self, error: Body) -> None:
        await self._send({"error": error})
        await self._connection.end_stream()

    async def finish(self, reason: str) -> None:
        """The timings are in the last chunk before [DONE]: that of the usage, if asked for."""
        last = [wire.choice({}, reason)]
        timings = wire.timings(self._call)
        options: Body = self._call.body.get("stream_options") or {}
        if options.get("include_usage"):
            usage = self._chunk([], usage=wire.usage(self._call), timings=timings)
            await self._send(self._chunk(last), usage)
        else:
            await self._send(self._chunk(last, timings=timings))
        await self._connection.write_chunk(wire.DONE)
        await self._connection.end_stream()

    def _chunk(self, choices: list[Body], **more: Body) -> Body:
        return wire.chunk(self._id, choices, **more)

    def _token_timings(self) -> Body:
        wanted = self._call.body.get("timings_per_token")
        return {"timings": wire.timings(self._call)} if wanted else {}

    async def _send(self, *events: Body) -> None:
        await self._connection.write_chunk(b"".join(map(wire.event, events)))


class Whole:
    """Nothing is sent, not even a head, before the end."""

    def __init__(self, connection: Connection, call: Call) -> None:
        self._connection = connection
        self._call = call
        self._deltas: list[Body] = []

    async def begin(self) -> None: ...

    async def progress(self) -> None: ...

    async def token(self, delta: Body | None) -> None:
        if delta is not None:
            self._deltas.append(delta)

    async def ping(self) -> None: ...

    async def fail(self, error: Body) -> None:
        self._call.status = 500
        await self._connection.respond(500, wire.to_json({"error": error}))

    async def finish(self, reason: str) -> None:
        self._call.status = 200
        message = wire.message_of(self._deltas)
        completion_id = f"chatcmpl-{wire.random_name()}"
        body = wire.completion(completion_id, message, reason, self._call)
        await self._connection.respond(200, wire.to_json(body))


Answer = Streamed | Whole
