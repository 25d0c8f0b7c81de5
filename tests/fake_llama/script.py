"""What a test tells the fake (Reply), and what the fake tells the test (Call)."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Body = dict[str, Any]
"""A JSON object."""

Text = str | Sequence[str | bytes]
"""What is said, or its tokens: "" is one without text, bytes are a part of a character."""

State = Literal["queued", "prefill", "decode", "done", "cancelled", "error", "died"]


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer; a delta is a token the client gets, tps is tokens per second."""

    content: Text = ""
    reasoning: Text = ""
    tool_calls: Sequence[tuple[str, Body | Text]] = ()  # name, arguments (a text is sent as it is)
    finish: str | None = None  # default: "tool_calls" or "stop", "length" when out of room
    prompt_tokens: int | None = None  # default: counted
    cached: int | None = None  # default: the longest prefix kept
    prefill_tps: float = math.inf
    decode_tps: float = math.inf
    gate: asyncio.Event | None = None  # holds the call in prefill, after the head, until set
    stall_after: int | None = None  # stays in the batch after so many, until `release` is set
    hang_after: int | None = None  # silent after so many deltas, until `release` is set
    release: asyncio.Event | None = None
    die_after: int | None = None  # resets the connection after so many deltas
    eof_after: int | None = None  # closes it instead, as a killed llama-server does
    error: tuple[int, Body] | None = None  # status and error, in place of the answer
    stream_error: tuple[int, Body] | None = None  # an error event after so many deltas


Choose = Callable[[Body], Reply]
Script = Sequence[Reply] | Choose


def chooser(script: Script) -> Choose:
    """Makes a list of replies a function that gives them one by one, and then always "ok"."""
    if callable(script):
        return script
    replies = deque(script)
    return lambda _: replies.popleft() if replies else Reply(content="ok")


@dataclass(eq=False)
class Call:
    """One chat request as the fake saw it; times are of time.monotonic()."""

    changed: Callable[[], None] = field(repr=False)
    body: Body = field(default_factory=dict[str, Any])
    state: State = "queued"
    status: int | None = None  # of the HTTP response, once its head is written
    reply: Reply | None = None
    n_prompt: int = 0
    n_cached: int = 0
    n_processed: int = 0  # of the prompt, without those cached
    n_decoded: int = 0  # with the silent ones and the end of turn
    arrived_at: float = field(default_factory=time.monotonic)
    started_at: float | None = None  # the slot began
    decoding_at: float | None = None  # the first token came
    ended_at: float | None = None
    prompt_seconds: float = 0.0
    predicted_seconds: float = 0.0

    @property
    def n_in_slot(self) -> int:
        """The last token was sampled, but never decoded."""
        return self.n_cached + self.n_processed + max(self.n_decoded - 1, 0)

    def begin(self, reply: Reply, n_prompt: int) -> None:
        self.started_at = time.monotonic()
        self.reply, self.n_prompt = reply, n_prompt

    def enter(self, state: State) -> None:
        self.state = state
        self.changed()

    def prefilled(self, n_tokens: int) -> None:
        self.n_processed += n_tokens
        self.prompt_seconds = time.monotonic() - (self.started_at or 0.0)
        self.changed()

    def decoded(self) -> None:
        now = time.monotonic()
        self.decoding_at = self.decoding_at or now
        self.n_decoded += 1
        self.predicted_seconds = max(now - self.decoding_at, 1e-6)
        self.changed()

    def end(self, state: State) -> None:
        """The first end counts: a client may still leave before it has read a whole answer."""
        if self.ended_at is None:
            self.ended_at = time.monotonic()
            self.enter(state)
