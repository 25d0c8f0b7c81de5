"""Names of machines, as they stand in settings and in the `Host` header."""

from ipaddress import ip_address
from urllib.parse import urlsplit

WILDCARDS = frozenset({"0.0.0.0", "::"})
"""Addresses to listen on that mean every address of this machine."""


def host_name(header: str) -> str:
    """The name or address in a `Host` header, without port and brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()


def is_address(name: str) -> bool:
    """The name is an IP address, which no DNS answer can point elsewhere."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_local(url: str) -> bool:
    """The URL is one of this machine, of which no proxy knows."""
    return is_loopback((urlsplit(url).hostname or "").lower())


def is_loopback(name: str) -> bool:
    """The name means this machine and reaches nobody else."""
    return name == "localhost" or (is_address(name) and ip_address(name).is_loopback)
