"""Where the embedded Valkey listens."""

from pathlib import Path
from typing import Any

import pytest

from api.local.valkey import LONGEST_SOCKET, SOCKET, socket_in, socket_url, valkey_part
from shared.redis import connection_pool


@pytest.mark.parametrize("folder", ["/a b", "/100%", "/a%20b", "/what?x=y", "/a#b", "/ünd", "/a+b"])
def test_the_url_names_the_socket_whatever_is_in_its_path(folder: str) -> None:
    socket = Path(folder) / SOCKET
    pool: Any = connection_pool(socket_url(socket))
    assert pool.connection_kwargs["path"] == str(socket)


def test_the_socket_is_in_the_folder(tmp_path: Path) -> None:
    with socket_in(Path("/d")) as socket:
        assert socket == Path("/d") / SOCKET


def test_a_path_that_is_too_long_for_a_socket_gives_way_to_a_short_one(tmp_path: Path) -> None:
    long = tmp_path / ("é" * (LONGEST_SOCKET // 2))
    with socket_in(long) as socket:
        assert len(bytes(socket)) <= LONGEST_SOCKET
        socket.touch()
    assert not socket.parent.exists()


def test_every_write_is_kept_and_nothing_is_evicted() -> None:
    command = valkey_part(Path("/d"), Path("/d/s")).command
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--maxmemory-policy"] == "noeviction"
    assert options["--port"] == "0"
