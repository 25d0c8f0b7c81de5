"""The far side of the clients' HTTP: answers by a script and remembers what it was asked."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from shared import chunks
from shared.chunks import Chunk

TURN = "0199a2f0-0000-7000-8000-000000000001"
THREAD = "th-1"


class Reply(NamedTuple):
    """One answer. `cut`: the connection ends before it is whole; `hang`: it stays open, silent."""

    body: bytes = b""
    status: int = 200
    content_type: str = "text/event-stream; charset=utf-8"
    cut: bool = False
    hang: bool = False


class Asked(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


HANG_UP: None = None
"""Instead of a reply: the connection is closed without one."""


class FakeApi:
    """`script`: what each request is answered in turn; the last reply serves all that follow."""

    def __init__(self) -> None:
        self.script: list[Reply | None] = []
        self.asked: list[Asked] = []
        self.stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, asked: Asked) -> Reply | None:
        """The next reply of the script."""
        self.asked.append(asked)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def stop(self) -> None:
        """Ends every connection and takes no more."""
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def run_fake_api() -> Generator[FakeApi]:
    """Serves on a free port of 127.0.0.1."""
    api = FakeApi()
    try:
        yield api
    finally:
        api.stop()


def events(*texts: str) -> bytes:
    """The stream of these events' data; ids are left out as no client of ours needs them."""
    return b"".join(b"data: %b\n\n" % text.encode() for text in texts)


def numbered(*turn: Chunk, start: int = 1) -> list[str]:
    """The data of these chunks as they are sent, numbered from `start`."""
    return [
        chunks.frame(seq, chunks.encode(chunk)).decode() for seq, chunk in enumerate(turn, start)
    ]


def json_reply(body: Any, status: int = 200) -> Reply:
    """An answer of JSON."""
    return Reply(json.dumps(body).encode(), status, "application/json")


def problem(status: int, code: str, detail: str) -> Reply:
    """A refusal."""
    body = {"type": "about:blank", "title": "No", "status": status, "detail": detail, "code": code}
    return Reply(json.dumps(body).encode(), status, "application/problem+json")


def _handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, self.rfile.read(length))
            self.close_connection = True
            if reply := api.answer(asked):
                self._send(reply)

        do_POST = do_GET

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            self.send_header("Connection", "close")
            self.send_header("X-Turn-Id", TURN)
            self.send_header("X-Thread-Id", THREAD)
            self.send_header("Content-Type", reply.content_type)
            if reply.status != 204:
                self.send_header("Content-Length", str(len(reply.body) + reply.cut + reply.hang))
            self.end_headers()
            self.wfile.write(reply.body)
            if reply.hang:
                self.wfile.flush()
                api.stopped.wait()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
