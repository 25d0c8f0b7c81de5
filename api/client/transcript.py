"""A turn as a person reads it: the answer on one stream, all else in lines on another."""

import json
from typing import Any, TextIO, assert_never

import click
import msgspec

from api.client.event import Event
from api.client.terminal import clean, one_line, preview
from shared.chunks import (
    Cancelled,
    Chunk,
    Done,
    Error,
    Interruption,
    Place,
    Queued,
    Rewind,
    RewindReason,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
    ToolUse,
    Usage,
)
from shared.summary import Summary

WIDTH = 200
QUOTED = 40
BROKEN_OFF: dict[RewindReason, str] = {
    "worker_lost": "the worker was lost",
    "worker_stopped": "the worker was stopped",
}


class Transcript:
    """Writes a turn down as its chunks come; types that it does not know are passed over."""

    def __init__(self, answer: TextIO, notes: TextIO) -> None:
        self._answer = answer
        self._notes = notes
        self._message_id = ""
        self._in_line = False
        self._last: Chunk | None = None
        self._standing: list[tuple[int, str]] = []

    def show(self, event: Event) -> None:
        """Writes one chunk down."""
        try:
            chunk: Chunk = msgspec.convert(event.body, Chunk)
        except msgspec.ValidationError:
            if event.completed:
                self.note(f"ended: {event.type}")
        else:
            if chunk != self._last or not isinstance(chunk, Queued | Rewind):  # else nothing new
                self._show(event.seq, chunk)
            self._last = chunk

    def note(self, text: str) -> None:
        """Writes a line beside the answer; on a terminal, where both meet, below it."""
        if self._answer.isatty() and self._notes.isatty():
            self.end_line()
        click.echo(one_line(text), file=self._notes)

    def end_line(self) -> None:
        """Ends the answer's last line if it is open."""
        if self._in_line:
            click.echo(file=self._answer)
            self._in_line = False

    def _show(self, seq: int, chunk: Chunk) -> None:
        match chunk:
            case Queued(metadata=place):
                self.note(f"turn {chunk.turn_id}: {_place(place)}")
            case Text():
                self._write(seq, chunk)
            case ToolUse(metadata=call):
                self.note(_call(call))
            case ToolResult(metadata=outcome):
                self.note(_outcome(outcome, chunk.content))
            case Usage():
                pass
            case Rewind(metadata=interruption):
                self._rewind(interruption)
            case Done() | Error() | Cancelled():
                self._end(chunk)
            case _:
                assert_never(chunk)

    def _write(self, seq: int, chunk: Text) -> None:
        source = chunk.metadata
        if source.agent:
            return
        if source.message_id != self._message_id:
            self.end_line()
            self._message_id = source.message_id
        if text := clean(chunk.content):
            self._standing.append((seq, text if self._in_line else f"\n{text}"))
            self._in_line = not text.endswith("\n")
            click.echo(text, file=self._answer, nl=False)

    def _rewind(self, interruption: Interruption) -> None:
        """What is void stays where it was written: a note says what replaces it."""
        self.end_line()
        last = interruption.to_seq
        void = "".join(text for seq, text in self._standing if seq > last)
        self._standing = [(seq, text) for seq, text in self._standing if seq <= last]
        self.note(f"{BROKEN_OFF[interruption.reason]}, the turn goes on{_replaced(void)}")

    def _end(self, chunk: Done | Error | Cancelled) -> None:
        self.end_line()
        match chunk:
            case Done():
                cut = ", cut at the output limit" if chunk.metadata.truncated else ""
                self.note(f"done {_figures(chunk.metadata)}{cut}")
            case Error(metadata=summary):
                self.note(f"turnkeeper: {chunk.content} ({summary.code})")
                self.note(f"failed {_figures(summary)}{_undone(summary.rolled_back_messages)}")
            case Cancelled(metadata=summary):
                self.note(f"cancelled {_figures(summary)}{_undone(summary.rolled_back_messages)}")


def _place(place: Place) -> str:
    eta = "" if place.eta_s is None else f", starts in about {place.eta_s:.0f} s"
    return f"{_count(place.position, 'turn')} ahead{eta}"


def _call(call: ToolCall) -> str:
    args = json.dumps(call.args, ensure_ascii=False)
    return f"-> {'/'.join([*call.agent, call.name])} {preview(args, WIDTH)}"


def _outcome(outcome: ToolOutcome, content: str) -> str:
    took = "" if outcome.elapsed_s is None else f" in {outcome.elapsed_s:.1f} s"
    name = "/".join([*outcome.agent, outcome.name])
    return f"<- {name} {outcome.status}{took}: {preview(content, WIDTH)}"


def _replaced(void: str) -> str:
    start = preview(void, QUOTED)
    return f'; what follows replaces the answer from "{start}" on' if start else ""


def _figures(summary: Summary) -> str:
    usage = summary.usage
    window = usage.calls[-1].n_ctx if usage.calls else None
    return (
        f"in {summary.elapsed_s:.1f} s, {_count(summary.model_calls, 'model call')}, tokens: "
        f"{_known(usage.prompt_tokens_total)} in, {_known(usage.cache_read_total)} cached, "
        f"{_known(usage.completion_tokens_total)} out, "
        f"context: {_known(summary.context_tokens)} of {_known(window)}"
    )


def _undone(messages: int | None) -> str:
    return "" if messages is None else f", {_count(messages, 'message')} rolled back"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _known(figure: Any) -> str:
    return "n/a" if figure is None else str(figure)
