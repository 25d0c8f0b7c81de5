"""What must be equal in two answers: all but names drawn by lot, times and the model's own."""

import json
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, cast

from tests.fake_llama.wire import MODEL
from tests.llama_wire.recording import Answer, Body

NUMBERS = re.compile(r"(?<=Content-Length: )\d+|(?<=Process-Start-Time-Unix: )\d+")
MODELS = re.compile(rf"SmolLM2-135M-Instruct\.Q4_1\.gguf|{re.escape(MODEL)}")
RANDOM = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{32}(?![A-Za-z0-9])")
MEASURED = re.compile(r"^created$|^id_task$|_ms$|_per_second$")
OF_THE_MODEL = re.compile(
    r"^supports_|ftype$|^n_vocab$|^n_embd$|^n_params$|^size$|^(bos|eos)_token$"
    r"|^chat_template$|^generation_prompt$"
)
PARSER_WORDS = re.compile(r"(\[json\.exception\.parse_error\.101\]).*")
MEASURED_METRIC = re.compile(r"^(\S+_seconds\S*) [\d.e+-]+$", re.MULTILINE)


def likeness(answer: Answer) -> tuple[list[str], list[list[Any]], str]:
    """Head, events by HTTP chunk and end; a row of pings is one, as time makes their number."""
    names: dict[str, str] = {}
    chunks = [list(_events(chunk, names)) for chunk in answer.chunks]
    return _head(answer), [chunk for chunk, _ in groupby(chunks)], answer.end


def _head(answer: Answer) -> list[str]:
    """The length was of a body with a longer name for the model."""
    return NUMBERS.sub("a number", answer.head).split("\r\n")


def _events(chunk: str, names: dict[str, str]) -> Iterator[Any]:
    """The events of a stream, or the one body; a random name is its number in the answer."""
    chunk = MODELS.sub("the model", chunk)
    chunk = RANDOM.sub(lambda found: names.setdefault(found[0], f"name {len(names)}"), chunk)
    for text in chunk.split("\n\n"):
        yield text.startswith("data: "), _like(text.removeprefix("data: "))


def _like(text: str) -> Any:
    try:
        return _blurred("", json.loads(text))
    except ValueError:
        return MEASURED_METRIC.sub(r"\1 a number", text)


def _blurred(key: str, value: Any) -> Any:
    """A measure keeps its type and whether it is 0, a property of the model its type."""
    match value:
        case dict():
            return {name: _blurred(name, member) for name, member in cast(Body, value).items()}
        case list():
            return [_blurred(key, item) for item in cast(list[Any], value)]
        case int() | float() if MEASURED.search(key):
            return type(value).__name__, value == 0 and isinstance(value, float)
        case str() if key == "message":
            return PARSER_WORDS.sub(r"\1", value)
        case _:
            return type(value).__name__ if OF_THE_MODEL.search(key) else value
