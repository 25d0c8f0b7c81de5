"""Cancels at random moments leave no trace: a few here, any number by tests.fuzz.cancels."""

from pathlib import Path
from random import randrange

from tests.fuzz.search import open_search

CANCELS = 15


async def test_no_random_cancel_leaves_a_trace(redis_url: str, tmp_path: Path) -> None:
    async with open_search(redis_url, tmp_path, seed=randrange(10**6)) as search:
        await search.run(CANCELS)
    assert any(end.endswith("cancelled") for end in search.ends), search.ends
