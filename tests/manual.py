"""The README as data: its commands, and its files."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Every line that begins with a prompt, in order."""
    blocks = [text for kind, text in FENCE.findall(README.read_text()) if kind == "console"]
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def files() -> dict[str, str]:
    """The files of Python that it shows, by the name in their first line."""
    blocks = [text for kind, text in FENCE.findall(README.read_text()) if kind == "python"]
    return {block.splitlines()[0].removeprefix("# "): block for block in blocks}
