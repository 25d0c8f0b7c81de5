"""The benchmarks run; what they find is no test."""

import asyncio
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec

import pytest


@pytest.mark.parametrize(
    ("arguments", "figures"),
    [
        (("tests.bench.latency", "2"), {"median": 4}),
        (("tests.bench.cancel", "2"), {"median": 4}),
        (("tests.bench.restore", "1", "10"), {"10 messages": 1}),
    ],
)
async def test_it_measures(arguments: tuple[str, ...], figures: dict[str, int]) -> None:
    process = await create_subprocess_exec(sys.executable, "-m", *arguments, stdout=PIPE)
    try:
        async with asyncio.timeout(100):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0
    assert {name: output.decode().count(name) for name in figures} == figures
