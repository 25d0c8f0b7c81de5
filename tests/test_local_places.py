"""The address that `turnkeeper up` tells."""

import pytest

from api.local.places import format_url


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8010"),
        ("0.0.0.0", "http://127.0.0.1:8010"),
        ("::", "http://[::1]:8010"),
        ("::1", "http://[::1]:8010"),
        ("192.168.1.1", "http://192.168.1.1:8010"),
    ],
)
def test_it_can_be_reached_from_this_machine(host: str, url: str) -> None:
    assert format_url(host, 8010) == url
