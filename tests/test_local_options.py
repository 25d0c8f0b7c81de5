"""The address that `turnkeeper up` tells."""

from pathlib import Path

import pytest

from api.local.options import Options


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8010"),
        ("0.0.0.0", "http://127.0.0.1:8010"),
        ("::", "http://[::1]:8010"),
        ("::1", "http://[::1]:8010"),
        ("my.host", "http://my.host:8010"),
    ],
)
def test_it_can_be_reached_from_this_machine(host: str, url: str) -> None:
    options = Options(
        data=Path("/d"),
        host=host,
        port=8010,
        guarded=False,
        model=None,
        redis_url=None,
        llama_base_url="http://127.0.0.1:8080/v1",
    )
    assert options.url == url
