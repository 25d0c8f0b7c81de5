"""Serves one fixed answer until SIGTERM or SIGINT: `python -m tests.fake_llama [PORT]`."""

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


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
