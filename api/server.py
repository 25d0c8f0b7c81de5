"""The API process: what it opens, serves and closes again."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
import uvicorn
from uvicorn.loops.auto import auto_loop_factory

from api.app import create_app
from api.hub import Hub
from api.listener import bind, describe_refusal
from api.settings import ApiSettings
from shared.reasons import say_reason
from shared.redis import open_redis
from shared.signals import STOP, ignore_stop_signals

SHUTDOWN_S = 5
CUT_STREAM = "ASGI callable returned without completing response."

logger = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """A server that says goodbye to open streams; signals are the business of its process."""

    def __init__(self, config: uvicorn.Config, farewell: anyio.Event) -> None:
        super().__init__(config)
        self._farewell = farewell

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leaves them alone: uvicorn would raise SIGTERM again after its proper end."""
        yield

    def stop(self) -> None:
        """Ends in order; asked again it changes nothing, where uvicorn would cut the streams."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the streams, which would never end by themselves, then everything else."""
        self._farewell.set()
        await super().shutdown(sockets)


def run(settings: ApiSettings, fd: int | None) -> int:
    """Serves until SIGTERM or Ctrl-C, on the listening socket `fd` if given; the exit code."""
    host, port = settings.API_HOST, settings.API_PORT
    try:
        listener = bind(host, port) if fd is None else socket.socket(fileno=fd)
    except OSError as error:
        say_reason(describe_refusal(host, port, error))
        return 1
    # uvicorn blames the application for a stream that was cut because its client had gone silent.
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.msg != CUT_STREAM)
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        runner.run(_serve(settings, listener))
    return 0


@asynccontextmanager
async def open_server(settings: ApiSettings) -> AsyncGenerator[Server]:
    """The server with all that it needs; Redis need not be reachable yet."""
    async with open_redis(settings.REDIS_URL) as redis, Hub(redis) as hub:
        app = create_app(settings, redis, hub)
        config = uvicorn.Config(
            app,  # pyright: ignore[reportArgumentType]  # Litestar has ASGI types of its own
            log_config=None,
            access_log=settings.LOG_LEVEL == "DEBUG",
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_S,
            ws="none",
        )
        yield Server(config, hub.farewell)


async def _serve(settings: ApiSettings, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    async with open_server(settings) as server:
        for number in STOP:
            asyncio.get_running_loop().add_signal_handler(number, server.stop)
        logger.info("Listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)
        await server.serve(sockets=[listener])
    ignore_stop_signals()
