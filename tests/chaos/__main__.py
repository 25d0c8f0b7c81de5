"""A long chaos run: `python -m tests.chaos [TURNS] [SEED]`."""

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


if __name__ == "__main__":
    # As worker/command.py does, before LangGraph is imported.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    given = [int(text) for text in sys.argv[1:]]
    sys.exit(asyncio.run(main(*given, *(TURNS, random.randrange(10**6))[len(given) :])))
