"""Threads: what the API asks the worker about them, and what the worker answers.

Times are milliseconds since the epoch, by Redis' clock.
"""

from typing import Any, Literal

from msgspec import Struct

from shared.chunks import ToolStatus
from shared.record import TurnRecord
from shared.usage import ThreadUsage

ThreadStatus = Literal["idle", "queued", "running", "awaiting_decision", "quarantined"]
Role = Literal["user", "assistant", "tool"]

TITLE_CHARS = 60
"""How much of a thread's first message is its title until it is given one."""


class ThreadSummary(Struct, frozen=True, kw_only=True):
    """A thread as a list shows it. `turns`: how many the model remembers.

    `context_pct`: of the model's context that the last remembered turn has filled, by the model
    server's own figures. `updated_at`: when its last turn was accepted or ended. `current_turn`: id
    of the turn that is at work or waits, the first of several. What is unknown is None.
    """

    thread_id: str
    title: str | None = None
    agent: str | None = None
    status: ThreadStatus = "idle"
    turns: int = 0
    context_pct: float | None = None
    updated_at: int | None = None
    current_turn: str | None = None


class ThreadDetail(ThreadSummary, frozen=True, kw_only=True):
    """A thread. `known`: it has a checkpoint or a turn that has ended. Sizes are tokens."""

    known: bool = False
    context_tokens: int | None = None
    n_ctx: int | None = None
    usage: ThreadUsage = ThreadUsage()
    created_at: int | None = None


class Place(Struct, frozen=True, array_like=True):
    """Where a page of threads ended, in a walk that began when the newest was of `since`.

    A thread's place in the walk is the one that it had then, whatever has come to it since: so each
    thread that was there is met once.
    """

    since: int
    updated_at: int
    thread_id: str


class ThreadPage(Struct, frozen=True, kw_only=True):
    """The newest first; `next`: where the next page goes on, None at the end."""

    threads: list[ThreadSummary]
    next: Place | None = None


class ToolCallMade(Struct, frozen=True, kw_only=True):
    """A tool that the model has called, as in a `tool_use` chunk."""

    call_id: str
    name: str
    args: dict[str, Any]


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message as the person saw it. `tool_calls`: of an assistant. `call_id`, `name`, `status`:
    of a tool's result. `turn_id` is None for what came from elsewhere.
    """

    id: str
    role: Role
    content: str
    created_at: int | None
    turn_id: str | None
    tool_calls: list[ToolCallMade] = []
    call_id: str | None = None
    name: str | None = None
    status: ToolStatus | None = None


class Transcript(Struct, frozen=True):
    """The messages of a thread's turns that were done, in order."""

    messages: list[Message]


class EndedTurns(Struct, frozen=True):
    """The thread's turns that have ended, oldest first, however they ended."""

    turns: list[TurnRecord]


class Forgotten(Struct, frozen=True):
    """Nothing is left of the thread."""


class ListThreads(Struct, frozen=True, kw_only=True, tag="list_threads"):
    """A ThreadPage of at most `limit`, of those threads only that `agent` and `status` name."""

    limit: int
    after: Place | None = None
    agent: str | None = None
    status: ThreadStatus | None = None


class ReadThread(Struct, frozen=True, tag="read_thread"):
    """A ThreadDetail, of an unknown thread too."""

    thread_id: str


class RenameThread(Struct, frozen=True, tag="rename_thread"):
    """A ThreadDetail with the new title; UnknownThread."""

    thread_id: str
    title: str


class ReadMessages(Struct, frozen=True, tag="read_messages"):
    """A Transcript, with calls and results of tools if `tools`; UnknownThread, StateUnreadable."""

    thread_id: str
    tools: bool = False


class ReadTurns(Struct, frozen=True, tag="read_turns"):
    """EndedTurns, empty for an unknown thread."""

    thread_id: str


class ForgetThread(Struct, frozen=True, tag="forget_thread"):
    """Forgotten; ThreadBusy while a turn of it runs."""

    thread_id: str


ThreadQuestion = ListThreads | ReadThread | RenameThread | ReadMessages | ReadTurns | ForgetThread
