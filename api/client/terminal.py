"""What may reach a terminal: text that cannot command it."""

import re

import click

NOT_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""The control characters of ASCII and Latin-1, except newline and tab."""
NOT_UNICODE = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without control characters, and with a sign for what cannot be encoded."""
    return NOT_UNICODE.sub("\ufffd", NOT_TEXT.sub("", text))


def one_line(text: str) -> str:
    """The clean text with its white space run together."""
    return " ".join(clean(text).split())


def preview(text: str, width: int) -> str:
    """The first characters of the text on one line."""
    line = one_line(text)
    return line if len(line) <= width else f"{line[: width - 3]}..."


def say(text: str) -> None:
    """One line to standard error."""
    click.echo(one_line(text), err=True)
