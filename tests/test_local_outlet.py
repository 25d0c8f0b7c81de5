"""The lines of a process."""

import asyncio
import os

import pytest

from api.local.outlet import READ_BYTES, Outlet


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"\n\n", ["", ""]),
        (b"no end", ["no end"]),
        (b"not \xff utf-8\n", ["not \ufffd utf-8"]),
    ],
)
async def test_lines_are_what_stands_between_newlines(said: bytes, lines: list[str]) -> None:
    outlet = await Outlet.open()
    os.write(outlet.end, said)
    outlet.leave_end()
    assert [line async for line in outlet.lines()] == lines
    outlet.close()


async def test_a_line_without_end_comes_in_pieces() -> None:
    outlet = await Outlet.open()
    said = asyncio.create_task(asyncio.to_thread(write, outlet, b"x" * 3 * READ_BYTES))
    pieces = [line async for line in outlet.lines()]
    await said
    assert len(pieces) > 1
    assert "".join(pieces) == "x" * 3 * READ_BYTES
    outlet.close()


def write(outlet: Outlet, said: bytes) -> None:
    """Writes more than a pipe holds."""
    with os.fdopen(outlet.end, "wb") as end:
        end.write(said)
