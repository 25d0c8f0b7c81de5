"""The server: its routes, its connections, and what a test sees of them."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Self

from tests.fake_llama import metrics, status, wire
from tests.fake_llama.chat import Chat
from tests.fake_llama.connection import Closed, Connection, Request
from tests.fake_llama.script import Call, Script, chooser
from tests.fake_llama.slot import Slot

LOADING = {"message": "Loading model", "type": "unavailable_error"}
NOT_FOUND = {"message": "File Not Found", "type": "not_found_error"}


class FakeLlama:
    """A llama-server on 127.0.0.1 that answers as its script says; entered with `async with`."""

    def __init__(
        self,
        script: Script = (),
        *,
        n_ctx: int = 8192,
        n_batch: int = 512,
        cache_ram: bool = True,
        sse_ping_interval: float = 30.0,
        port: int = 0,
        loading: bool = False,
    ) -> None:
        self.port = port
        self.loading = loading
        self.calls: list[Call] = []
        self.max_at_once = 0
        self._choose = chooser(script)
        self._ping_interval = sse_ping_interval
        self._slot = Slot(n_ctx=n_ctx, n_batch=n_batch, cache_ram=cache_ram)
        self._unanswered: set[Connection] = set()
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._closing = False
        self._started = f"Process-Start-Time-Unix: {int(time.time())}\r\n"

    async def __aenter__(self) -> Self:
        reserved = self.port != 0
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, reuse_port=reserved
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Raises what went wrong in a connection, such as an assertion in a script function."""
        self._closing = True
        self._server.close()
        for connection, task in self._connections.items():
            connection.abort()
            task.cancel()
        ends = await asyncio.gather(*self._connections.values(), return_exceptions=True)
        await self._server.wait_closed()
        for fault in (end for end in ends if isinstance(end, Exception)):
            raise fault

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    async def wait_for(self, condition: Callable[[], object], within: float = 10.0) -> None:
        """Waits until `condition` holds, looking whenever a call changes; raises TimeoutError."""
        try:
            async with asyncio.timeout(within):
                while not condition():
                    await self._changed.wait()
        except TimeoutError:
            seen = [(call.state, call.n_processed, call.n_decoded) for call in self.calls]
            raise TimeoutError(f"not within {within} s; calls: {seen}") from None

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        if self._closing:
            connection.abort()
        else:
            self._connections[connection] = asyncio.create_task(self._serve(connection))

    async def _serve(self, connection: Connection) -> None:
        async with connection:
            try:
                while (request := await connection.read_request()) is not None:
                    await self._answer(request, connection)
            except Closed:
                return

    async def _answer(self, request: Request, connection: Connection) -> None:
        if self.loading:
            await _respond(connection, wire.refused(503, LOADING), 503)
        elif (request.method, request.path) == ("POST", "/v1/chat/completions"):
            await self._chat(request, connection)
        elif request.method == "GET":
            await self._tell(request.path, connection)
        else:
            await _respond(connection, wire.refused(404, NOT_FOUND), 404)

    async def _tell(self, path: str, connection: Connection) -> None:
        match path:
            case "/health" | "/v1/health":
                await _respond(connection, status.OK)
            case "/models" | "/v1/models":
                await _respond(connection, status.models(self._slot.n_ctx))
            case "/props":
                await _respond(connection, status.props(self._slot.n_ctx))
            case "/slots":
                await _respond(connection, status.slots(self._slot))
            case "/metrics":
                text = metrics.exposed(self.calls, self._slot).encode()
                await connection.respond(200, text, metrics.CONTENT_TYPE, self._started)
            case "/lora-adapters":
                await _respond(connection, [])
            case _:
                await _respond(connection, wire.refused(404, NOT_FOUND), 404)

    async def _chat(self, request: Request, connection: Connection) -> None:
        call = Call(self._notify)
        self.calls.append(call)
        self._unanswered.add(connection)
        at_once = sum(not each.gone for each in self._unanswered)
        self.max_at_once = max(self.max_at_once, at_once)
        self._notify()
        try:
            chat = Chat(call, connection, self._slot, self._choose, self._ping_interval)
            await chat.run(request.body)
        finally:
            self._unanswered.discard(connection)


async def _respond(connection: Connection, body: Any, code: int = 200) -> None:
    await connection.respond(code, wire.to_json(body))
