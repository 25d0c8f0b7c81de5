"""What a terminal takes and shows: commands against a fake API, and the chunks of its turns."""

import signal
from collections.abc import Callable
from typing import Any

from click.testing import CliRunner, Result

from api.commands import commands
from shared.chunks import (
    Cancelled,
    Chunk,
    Done,
    Error,
    Place,
    Queued,
    Source,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
    ToolUse,
)
from shared.summary import CancelSummary, ErrorSummary, Summary
from shared.usage import CallUsage, TurnUsage
from tests.fake_api import TURN, FakeApi, Reply, events, numbered

USAGE = TurnUsage(
    calls=[CallUsage(call_index=1, input_tokens=50, n_ctx=4096)],
    model_calls=2,
    prompt_tokens_total=80,
    cache_read_total=39,
    completion_tokens_total=16,
)
FIGURES = "2 model calls, tokens: 80 in, 39 cached, 16 out, context: 50 of 4096"
"""What is told of `done`, but for its time."""

Run = Callable[..., Result]
"""A command's arguments, and options of `CliRunner.invoke`."""


def open_terminal(api: FakeApi) -> Run:
    """Each command that is run in it asks this API."""

    def run(*arguments: str, **options: Any) -> Result:
        env = {"TURNKEEPER_URL": api.url, "API_TOKEN": ""}
        before = signal.getsignal(signal.SIGINT)
        try:
            return CliRunner().invoke(commands, arguments, env=env, **options)
        finally:
            signal.signal(signal.SIGINT, before)

    return run


def queued(position: int, eta_s: float | None = None) -> Chunk:
    """A wait in the queue."""
    return Queued(turn_id=TURN, metadata=Place(position=position, eta_s=eta_s))


def text(content: str, message_id: str = "m1", *agent: str) -> Chunk:
    """A piece of what the agent, or a sub-agent, says."""
    return Text(turn_id=TURN, content=content, metadata=Source(message_id, list(agent)))


def call(**args: Any) -> Chunk:
    """A call of the one tool."""
    metadata = ToolCall(call_id="c1", name="search", args=args)
    return ToolUse(turn_id=TURN, content="search", metadata=metadata)


def outcome(content: str) -> Chunk:
    """What the tool has answered."""
    metadata = ToolOutcome(call_id="c1", name="search", status="ok", truncated=False, elapsed_s=0.3)
    return ToolResult(turn_id=TURN, content=content, metadata=metadata)


def done() -> Chunk:
    """A good end."""
    summary = Summary(elapsed_s=3.21, queued_s=0.1, model_calls=2, usage=USAGE, context_tokens=50)
    return Done(turn_id=TURN, metadata=summary)


def failed() -> Chunk:
    """A bad end."""
    summary = ErrorSummary(elapsed_s=1, queued_s=0, code="model_error", rolled_back_messages=1)
    return Error(turn_id=TURN, content="The server said 500.", metadata=summary)


def cancelled() -> Chunk:
    """The end of a turn that was cancelled after its start."""
    summary = CancelSummary(elapsed_s=1, queued_s=0, rolled_back_messages=3)
    return Cancelled(turn_id=TURN, metadata=summary)


def stream(*chunks: Chunk) -> Reply:
    """An answer that is these chunks."""
    return Reply(events(*numbered(*chunks)))


def silent(*said: Chunk, end: Chunk) -> Reply:
    """An answer that is these chunks, and nothing more before a cancel."""
    return Reply(events(*numbered(*said)), rest=events(*numbered(end, start=len(said) + 1)))
