"""The benchmarks run; what they find is no test."""

import asyncio
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec


async def test_latency_is_measured() -> None:
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.latency", "2"), stdout=PIPE
    )
    try:
        async with asyncio.timeout(100):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0
    assert output.decode().count("median") == 4
