"""A long chaos run: `python -m tests.chaos [TURNS] [SEED]`."""

import argparse
import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path

TURNS = 500


async def main(turns: int, seed: int) -> int:
    """Reports in one line, and what was wrong in more; answers the exit code."""
    from tests.chaos.run import run_chaos

    with tempfile.TemporaryDirectory(prefix="tk") as name:
        result = await run_chaos(Path(name), turns, seed)
    sys.stdout.write(f"{result}\n")
    for fault in result.faults:
        sys.stdout.write(f"{fault}\n")
    return 1 if result.faults else 0


def read_arguments() -> argparse.Namespace:
    """What the command is given."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "turns", metavar="TURNS", nargs="?", type=int, default=TURNS, help="%(default)s by default"
    )
    parser.add_argument(
        "seed",
        metavar="SEED",
        nargs="?",
        type=int,
        default=random.randrange(10**6),
        help="makes the same run again; any other one by default",
    )
    return parser.parse_args()


if __name__ == "__main__":
    # As worker/command.py does, before LangGraph is imported.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    given = read_arguments()
    sys.exit(asyncio.run(main(given.turns, given.seed)))
