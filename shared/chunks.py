"""The events of a turn and their JSON.

On the wire: `{seq, turn_id, type, content, completed, metadata}`. A chunk is stored without its
`seq`, which is the id of its log entry; `frame` puts the two together and `parse` takes them apart.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from shared import characters
from shared.summary import CancelSummary, ErrorSummary, Summary
from shared.usage import CallUsage

Agent = list[str]
"""Path of sub-agents; empty for the turn's own agent."""


class Place(Struct, frozen=True):
    """`position`: turns before it, the running one included. `eta_s`: seconds, None until known."""

    position: int
    eta_s: float | None = None


class Source(Struct, frozen=True):
    """Which message a delta belongs to, and who speaks."""

    message_id: str
    agent: Agent = []


class ToolCall(Struct, frozen=True, kw_only=True):
    """A whole tool call."""

    call_id: str
    name: str
    args: dict[str, Any]
    agent: Agent = []


ToolStatus = Literal["ok", "validation_error", "api_error", "error"]


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """How a tool call ended; `elapsed_s`: seconds since its `tool_use`."""

    call_id: str
    name: str
    status: ToolStatus
    truncated: bool
    agent: Agent = []
    elapsed_s: float | None = None


RewindReason = Literal["worker_lost", "worker_stopped"]


class Interruption(Struct, frozen=True):
    """`to_seq`: number of the last chunk that stands. `reason`: what broke the turn off."""

    to_seq: int
    reason: RewindReason


class _Chunk(Struct, frozen=True, kw_only=True, tag_field="type"):
    turn_id: str
    content: str = ""
    completed: bool = False


class Queued(_Chunk, frozen=True, kw_only=True, tag="queued"):
    """The turn's place in the queue; the first chunk of every turn."""

    metadata: Place


class Text(_Chunk, frozen=True, kw_only=True, tag="text"):
    """`content` is the next piece of an answer."""

    metadata: Source


class ToolUse(_Chunk, frozen=True, kw_only=True, tag="tool_use"):
    """The agent calls a tool: `content` is its name, `metadata` the whole call."""

    metadata: ToolCall


class ToolResult(_Chunk, frozen=True, kw_only=True, tag="tool_result"):
    """A tool has answered: `content` is the beginning of its result."""

    metadata: ToolOutcome


class Usage(_Chunk, frozen=True, kw_only=True, tag="usage"):
    """A model call has ended: its tokens and speeds, as the model server stated them."""

    metadata: CallUsage


class Rewind(_Chunk, frozen=True, kw_only=True, tag="rewind"):
    """The turn goes on after it was broken off: what came after `metadata.to_seq` is void.

    What of that still stands is sent again.
    """

    metadata: Interruption


class Done(_Chunk, frozen=True, kw_only=True, tag="done"):
    """The turn's last chunk: it has succeeded."""

    metadata: Summary
    completed: bool = True


class Error(_Chunk, frozen=True, kw_only=True, tag="error"):
    """The turn's last chunk: it has failed; `content` says why, `metadata.code` too."""

    metadata: ErrorSummary
    completed: bool = True


class Cancelled(_Chunk, frozen=True, kw_only=True, tag="cancelled"):
    """The turn's last chunk: it was cancelled, and the thread is as it was before."""

    metadata: CancelSummary
    completed: bool = True


Terminal = Done | Error | Cancelled
Chunk = Queued | Text | ToolUse | ToolResult | Usage | Rewind | Terminal

TERMINAL_TYPES = frozenset({"done", "error", "cancelled"})

_decoder = msgspec.json.Decoder(Chunk)


class _Numbered(Struct, frozen=True):
    seq: int


_numbers = msgspec.json.Decoder(_Numbered)


def type_of(chunk: Chunk) -> str:
    """The chunk's `type` on the wire."""
    return str(chunk.__struct_config__.tag)


def encode(chunk: Chunk) -> bytes:
    """The chunk as it is stored: one JSON object without `seq`."""
    return characters.encode(chunk)


def decode(body: bytes) -> Chunk:
    """The stored chunk; msgspec.DecodeError when it is not one."""
    return _decoder.decode(body)


def frame(seq: int, body: bytes) -> bytes:
    """The chunk as it is sent: the stored object with its `seq` in front."""
    return b'{"seq":%d,%b' % (seq, body[1:])


def parse(data: bytes | str) -> tuple[int, Chunk]:
    """A sent chunk's number and value; msgspec.DecodeError when it is not one."""
    return _numbers.decode(data).seq, _decoder.decode(data)
