"""Cancels at random moments, and whether any of them leaves a trace.

`uv run python -m tests.fuzz.cancels [CANCELS] [SEED]` makes so many (1000) and prints how the turns
ended; or what one has left, and how to begin again. The same seed makes the same turns and the same
moments, but not the same races.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path

CANCELS = 1000


async def main(cancels: int, seed: int) -> None:
    """Makes the cancels and reports."""
    # As worker/command.py does, before LangGraph is imported.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from tests.fuzz.search import open_search
    from tests.valkey import run_valkey

    with tempfile.TemporaryDirectory(prefix="tk") as name:
        folder = Path(name)
        async with (
            run_valkey(folder) as redis_url,
            open_search(redis_url, folder, seed) as search,
        ):
            await search.run(cancels)
    for end, times in sorted(search.ends.items()):
        sys.stdout.write(f"{times:6} {end}\n")
    sys.stdout.write(f"{cancels} cancels, seed {seed}: none has left a trace\n")


def read_arguments() -> argparse.Namespace:
    """What the command is given."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.cancels", description=__doc__)
    parser.add_argument(
        "cancels",
        metavar="CANCELS",
        nargs="?",
        type=int,
        default=CANCELS,
        help="%(default)s by default",
    )
    parser.add_argument(
        "seed",
        metavar="SEED",
        nargs="?",
        type=int,
        default=random.randrange(10**6),
        help="makes the same turns and moments again; any other by default",
    )
    return parser.parse_args()


if __name__ == "__main__":
    given = read_arguments()
    asyncio.run(main(given.cancels, given.seed))
