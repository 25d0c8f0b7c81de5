"""The socket that the API listens on."""

import os
import socket


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; raises OSError."""
    family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server((host, port), family=family, backlog=2048)


def describe_refusal(host: str, port: int, error: OSError) -> str:
    """Why there is no listening, in the system's words without what Python adds to them."""
    number = error.errno or 0
    # The number of a name that cannot be resolved is of another kind.
    reason = os.strerror(number) if number > 0 else error.strerror
    return f"cannot listen on {host}:{port}: {reason}"
