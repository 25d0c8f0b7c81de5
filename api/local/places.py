"""Where the parts listen, kept free for them until they do."""

import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from api.listener import bind, describe_refusal, reserve_port
from api.local.errors import CannotStart
from api.local.llama import HOST
from api.local.options import Options
from api.local.valkey import socket_in
from shared.hosts import WILDCARDS

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class Places:
    """`api` listens already: the process inherits it."""

    valkey: Path
    llama_port: int
    api: socket.socket

    @property
    def url(self) -> str:
        """Where this machine reaches the API."""
        host, port = self.api.getsockname()[:2]
        return format_url(host, port)


def format_url(host: str, port: int) -> str:
    """The address, with loopback for every address of this machine."""
    host = LOOPBACK[host] if host in WILDCARDS else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def reserve_places(options: Options) -> Generator[Places]:
    """Raises CannotStart when the API's port is taken."""
    with (
        socket_in(options.valkey_folder) as valkey,
        reserve_port(HOST) as llama_port,
        _listen(options.host, options.port) as api,
    ):
        yield Places(valkey, llama_port, api)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return bind(host, port)
    except OSError as error:
        raise CannotStart(describe_refusal(host, port, error)) from None
