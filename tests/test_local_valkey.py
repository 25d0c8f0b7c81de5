"""Where the embedded Valkey listens."""

from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from api.local.valkey import LONGEST_SOCKET, SOCKET, socket_in, socket_url
from shared.redis import connection_pool


@pytest.mark.parametrize("folder", ["/a b", "/100%", "/a%20b", "/what?x=y", "/a#b", "/ünd", "/a+b"])
def test_the_url_names_the_socket_whatever_is_in_its_path(folder: str) -> None:
    socket = Path(folder) / SOCKET
    pool: Any = connection_pool(socket_url(socket))
    assert pool.connection_kwargs["path"] == str(socket)


def test_the_socket_is_in_the_folder() -> None:
    with socket_in(Path("/d")) as socket:
        assert socket == Path("/d") / SOCKET


def test_a_path_that_is_too_long_for_a_socket_gives_way_to_a_short_one(tmp_path: Path) -> None:
    long = tmp_path / ("é" * (LONGEST_SOCKET // 2))
    with socket_in(long) as socket:
        assert len(bytes(socket)) <= LONGEST_SOCKET
        socket.touch()
    assert not socket.parent.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("appendonly", "yes"), ("save", ""), ("maxmemory-policy", "noeviction"), ("port", "0")],
)
def test_the_server_keeps_every_write_and_evicts_nothing(
    valkey: Redis, name: str, value: str
) -> None:
    client: Any = valkey
    assert client.config_get(name) == {name: value}
