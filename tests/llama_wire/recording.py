"""A recorded conversation: what was asked, and the answer as it came over the wire."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

Body = dict[str, Any]
End = Literal["end", "eof", "reset", "client_close"]

FOLDER = Path(__file__).parent
CHUNK = re.compile(r"(?:^|\r\n)[0-9a-f]+\r\n((?:data: [^\r]+\n\n|:\n\n)+)(?=\r\n)")


class Request(NamedTuple):
    method: str
    path: str
    body: str = ""


class Answer(NamedTuple):
    head: str  # the status line and the header fields
    chunks: list[str]  # one for each HTTP chunk, or the body of a given length
    end: End  # "end" is a complete answer, "eof" and "reset" are a broken one

    @property
    def events(self) -> list[Body]:
        """The JSON bodies in it, in order."""
        texts = [text for chunk in self.chunks for text in chunk.split("\n\n")]
        bodies = [text.removeprefix("data: ") for text in texts]
        return [json.loads(body) for body in bodies if body.startswith("{")]

    @property
    def refused(self) -> bool:
        return " 200 " not in self.head.partition("\r\n")[0]


class Exchange(NamedTuple):
    request: Request
    answer: Answer


def chat(content: str = "hi", **fields: object) -> Request:
    """A streamed request, for a recording that does not hold its own."""
    body = {"messages": [{"role": "user", "content": content}], "stream": True, **fields}
    return Request("POST", "/v1/chat/completions", json.dumps(body))


def heard(raw: str) -> Answer:
    """The head and the whole chunks of what was written down as it came, without its end."""
    head, _, rest = raw.partition("\r\n\r\n")
    return Answer(head, CHUNK.findall(rest), "client_close")


def lines_of(name: str) -> list[Body]:
    """The lines of a recording: each has `t`, the seconds since its start."""
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def exchanges_of(name: str) -> Iterator[Exchange]:
    """The requests of a recording with their answers, in order."""
    request, head, chunks = Request("", ""), "", list[str]()
    for line in lines_of(name):
        match line.get("dir"):
            case "req":
                request = Request(line["method"], line["path"], line["body"])
            case "head":
                head, chunks = line["raw"], []
            case "chunk":
                chunks.append(line["raw"])
            case "end" | "eof" | "client_close" as end:
                yield Exchange(request, Answer(head, chunks, end))
            case _:
                pass
