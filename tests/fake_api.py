"""The far side of the clients' HTTP: answers by a script and remembers what it was asked."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from shared import chunks
from shared.chunks import Chunk

TURN = "0199a2f0-0000-7000-8000-000000000001"
THREAD = "th-1"
CANCELLING = {"turn_id": TURN, "thread_id": THREAD, "agent": "chat", "status": "cancelling"}


class Reply(NamedTuple):
    """One answer. `cut`: the connection ends before it is whole; `hang`: it stays open, silent.

    `late`: nothing is said before `let_go`. `rest`: more of the body, once a cancel was granted.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = "text/event-stream; charset=utf-8"
    cut: bool = False
    hang: bool = False
    late: bool = False
    rest: bytes = b""


class Asked(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


HANG_UP = Reply(status=0)
"""The connection is closed without a reply."""


class FakeApi:
    """`script`: what each request is answered in turn; the last reply serves all that follow.
    `cancels`: the same for cancels.
    """

    def __init__(self) -> None:
        self.script: list[Reply] = []
        self.cancels = [json_reply(CANCELLING, 202)]
        self.asked: list[Asked] = []
        self.stopped = threading.Event()
        self._moved = threading.Condition()
        self._let_go = False
        self._cancelled = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, asked: Asked) -> Reply:
        """The next reply of the script."""
        with self._moved:
            self.asked.append(asked)
            is_cancel = asked.path.endswith("/cancel")
            script = self.cancels if is_cancel else self.script
            reply = script.pop(0) if len(script) > 1 else script[0]
            self._cancelled |= is_cancel and 200 <= reply.status < 300
            self._moved.notify_all()
            return reply

    def paths(self, ending: str = "") -> list[str]:
        """What was asked for, in order."""
        return [asked.path for asked in self.asked if asked.path.endswith(ending)]

    def let_go(self) -> None:
        """Says what is late."""
        with self._moved:
            self._let_go = True
            self._moved.notify_all()

    def await_let_go(self) -> None:
        """Returns then."""
        self._wait(lambda: self._let_go)

    def await_cancel(self) -> None:
        """Returns once a cancel was granted."""
        self._wait(lambda: self._cancelled)

    def await_asked(self, ending: str = "") -> None:
        """Returns once a path with this ending was asked for."""
        self._wait(lambda: bool(self.paths(ending)))

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._moved:
            assert self._moved.wait_for(lambda: condition() or self.stopped.is_set(), 60)

    def stop(self) -> None:
        """Ends every connection and takes no more."""
        with self._moved:
            self.stopped.set()
            self._moved.notify_all()
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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, api: FakeApi, *connection: Any) -> None:
        self._api = api
        super().__init__(*connection)

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, self.rfile.read(length))
        self.close_connection = True
        reply = self._api.answer(asked)
        if reply.late:
            self._api.await_let_go()
        if reply.status:
            with suppress(ConnectionError):  # who asked may have left
                self._send(reply)

    do_POST = do_GET

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in _head(reply).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)
        if reply.rest:
            self._api.await_cancel()
            self.wfile.write(reply.rest)
        if reply.hang:
            self._api.stopped.wait()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _head(reply: Reply) -> dict[str, str]:
    length = len(reply.body + reply.rest) + reply.cut + reply.hang
    return {
        "Connection": "close",
        "X-Turn-Id": TURN,
        "X-Thread-Id": THREAD,
        "Content-Type": reply.content_type,
        **({} if reply.status == 204 else {"Content-Length": str(length)}),
    }
