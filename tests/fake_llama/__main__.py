"""Serves one fixed answer until SIGTERM or SIGINT: `python -m tests.fake_llama [PORT]`."""

import argparse
import asyncio
import signal
import sys

from tests.fake_llama import FakeLlama, Reply
from tests.fake_llama.script import Body


def answer(_: Body) -> Reply:
    content = "Hello from the fake. " * 3
    return Reply(reasoning="I think of it.", content=content, prefill_tps=2000, decode_tps=50)


async def main(port: int) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with FakeLlama(answer, port=port) as llama:
        sys.stdout.write(f"{llama.url}\n")
        sys.stdout.flush()
        await stopped.wait()


def read_arguments() -> argparse.Namespace:
    """What the command is given."""
    parser = argparse.ArgumentParser(prog="python -m tests.fake_llama", description=__doc__)
    parser.add_argument(
        "port", metavar="PORT", nargs="?", type=int, default=0, help="any free one by default"
    )
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(read_arguments().port))
