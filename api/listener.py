"""Sockets to listen on."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; raises OSError."""
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except UnicodeError:  # no name at all, "a..b" for example
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
    return socket.create_server((host, port), family=family, backlog=2048)


@contextmanager
def reserve_port(host: str) -> Generator[int]:
    """A port that nobody else is given until the end, and on which only SO_REUSEPORT may listen."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((host, 0))
        yield holder.getsockname()[1]


def describe_refusal(host: str, port: int, error: OSError) -> str:
    """Why there is no listening, in the system's words without what Python adds to them."""
    unknown = isinstance(error, socket.gaierror)
    reason = error.strerror if unknown else os.strerror(error.errno or 0)
    return f"cannot listen on {host}:{port}: {reason}"
