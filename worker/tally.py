"""What a turn adds up to: its calls, its text, how it ended."""

import math
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage

from shared.characters import mend
from shared.chunks import Agent
from shared.summary import Summary
from shared.usage import CallUsage, add_up


@dataclass
class Tally:
    """Counts while a turn runs. `chars`, `finish_reason` and `said` are the main agent's.

    `said`: when its messages were whole, in milliseconds since the epoch, by their ids.
    """

    calls: list[CallUsage] = field(default_factory=list[CallUsage])
    call_indexes: dict[str, int] = field(default_factory=dict[str, int])
    tool_calls: int = 0
    chars: int = 0
    finish_reason: str | None = None
    said: dict[str, int] = field(default_factory=dict[str, int])

    def note(self, message_id: str | None, agent: Agent, at: int) -> None:
        """A message is whole; one that is written again was so before."""
        if message_id and not agent:
            self.said.setdefault(mend(message_id), at)

    def call_index(self, message_id: str) -> int:
        """The place of a message's model call among the turn's, from 1."""
        return self.call_indexes.setdefault(
            message_id, max(self.call_indexes.values(), default=0) + 1
        )

    def has_usage(self, message_id: str) -> bool:
        """The figures of the message's model call are there."""
        return bool(message_id) and any(usage.message_id == message_id for usage in self.calls)

    def add(self, usage: CallUsage) -> None:
        """Takes the figures of a model call."""
        self.call_indexes[usage.message_id] = usage.call_index
        self.calls.append(usage)

    def add_text(self, text: str, agent: Agent) -> None:
        """Counts visible text."""
        if not agent:
            self.chars += len(text)

    def finish(self, reason: str, agent: Agent) -> None:
        """Keeps why the last call ended."""
        if not agent:
            self.finish_reason = mend(reason)

    def sum_up(self, *, elapsed_s: float, queued_s: float, run_id: str | None) -> Summary:
        """The turn's end in figures."""
        usage = add_up(self.calls, len(self.call_indexes))
        return Summary(
            elapsed_s=round(elapsed_s, 3),
            queued_s=round(queued_s, 3),
            tool_calls=self.tool_calls,
            model_calls=len(self.call_indexes),
            finish_reason=self.finish_reason,
            chars=self.chars,
            truncated=self.finish_reason == "length",
            run_id=run_id,
            usage=usage,
            context_tokens=usage.context_end,
        )


def read_usage(message: AIMessage, call_index: int, agent: Agent) -> CallUsage:
    """The server's figures for one call, from the chunk that carries them."""
    counts = cast(dict[str, Any], message.usage_metadata or {})
    timings = _members(message.response_metadata.get("timings"))
    return CallUsage(
        call_index=call_index,
        message_id=message.id or "",
        input_tokens=_count(counts.get("input_tokens")),
        output_tokens=_count(counts.get("output_tokens")),
        cache_read=_count(_members(counts.get("input_token_details")).get("cache_read")),
        prefill_tps=_figure(timings.get("prompt_per_second")),
        decode_tps=_figure(timings.get("predicted_per_second")),
        prompt_ms=_figure(timings.get("prompt_ms")),
        predicted_ms=_figure(timings.get("predicted_ms")),
        agent=agent,
    )


def _members(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    """A count as the server gave it; None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _figure(value: Any) -> float | None:
    """A figure as the server gave it; None for what is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None
