"""The commands of `turnkeeper`."""

import io
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn, cast

import click

from api.client.event import Event
from api.client.tables import describe_queue, describe_status
from api.client.terminal import say
from api.client.transcript import Transcript
from api.client.turn_stream import TurnStream
from api.client.turnkeeper import TurnkeeperClient, open_client
from shared.errors import TurnkeeperError
from shared.reasons import HEAD

DEFAULT_URL = "http://127.0.0.1:8010"

FAILED = 1
INTERRUPTED = 130
EXIT_CODES = {"done": 0, "error": FAILED, "cancelled": 2, "approval": 4}
"""By the type of the last chunk."""


class Commands(click.Group):
    """Tells each of our errors in a line; a wrong call exits 1 too, since 2 means cancelled."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except TurnkeeperError as error:
            say(f"{HEAD}{error}")
            ctx.exit(FAILED)
        except click.UsageError as error:
            error.show()
            ctx.exit(FAILED)


@click.group(cls=Commands)
def main() -> None:
    """Durable chat turns for one local model."""
    if cast(Any, sys.stdout) is None:  # closed by whoever started this
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    cast("io.TextIOWrapper[Any]", sys.stdout).reconfigure(errors="replace")


as_json = click.option("--json", "as_json", is_flag=True, help="Print what is received, as JSON.")


@main.command()
@click.option("--data", default="data", show_default=True, help="The folder that keeps all.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Of the API; API_PORT otherwise.")
@click.option("--model", type=Path, help="A GGUF file in place of the small model.")
def up(data: str, port: int | None, model: Path | None) -> None:
    """Run everything on this machine: Valkey, llama.cpp with a model, worker and API.

    A server of your own that REDIS_URL or LLAMA_BASE_URL names is used instead.
    """
    # Imported only now, as the other commands need not wait for it; the first takes the signals.
    from api.local.interruption import Interruption

    interruption = Interruption()
    from api.local.command import run_up

    run_up(data, port, model, interruption)


@main.command("api")
def run_api() -> None:
    """Run the API process."""
    _become("api")


@main.command("worker")
@click.option("--wait", is_flag=True, help="Wait for another owner of the database to go.")
def run_worker(wait: bool) -> None:
    """Run the worker process."""
    _become("worker", *(["--wait"] if wait else []))


@main.command()
@click.argument("text")
@click.option("--thread", "thread_id", help="The conversation to go on with; a new one otherwise.")
@click.option("--agent", help="The agent of a new conversation.")
@as_json
def ask(text: str, thread_id: str | None, agent: str | None, as_json: bool) -> None:
    """Ask one thing and stream the answer; a TEXT of - is read from standard input.

    Exits 0 when done, 1 on an error, 2 when cancelled, 4 when a decision is awaited.
    """
    if text == "-":
        text = sys.stdin.buffer.read().decode(errors="surrogateescape")
    with _client() as client:
        _stream(client.ask(text, thread_id, agent), as_json)


@main.command()
@click.argument("turn_id", metavar="TURN")
@as_json
def follow(turn_id: str, as_json: bool) -> None:
    """Stream a turn from its beginning; exits as ask does."""
    with _client() as client:
        _stream(client.follow(turn_id), as_json)


@main.command()
@as_json
def queue(as_json: bool) -> None:
    """Show the running turn and those that wait."""
    with _client() as client:
        answer = client.queue()
    click.echo(answer.raw if as_json else describe_queue(answer.body))


@main.command()
@as_json
def status(as_json: bool) -> None:
    """Show the state of model, worker and Redis."""
    with _client() as client:
        answer = client.status()
    click.echo(answer.raw if as_json else describe_status(answer.body))


def _become(module: str, *arguments: str) -> NoReturn:
    # The process itself is replaced, so that signals reach the one they are meant for; -P, lest a
    # folder of the same name where the command is typed is taken for the module.
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *arguments])


def _client() -> AbstractContextManager[TurnkeeperClient]:
    url = os.environ.get("TURNKEEPER_URL") or DEFAULT_URL
    return open_client(url, os.environ.get("API_TOKEN", ""))


def _stream(turn: TurnStream, as_json: bool) -> NoReturn:
    transcript = Transcript(sys.stdout, sys.stderr)
    show = _print_json if as_json else transcript.show
    last = ""
    try:
        for event in turn.read(tell=transcript.note):
            show(event)
            last = event.type
    except KeyboardInterrupt:
        transcript.end_line()
        say(f"{HEAD}{_farewell(turn)}")
        sys.exit(INTERRUPTED)
    finally:
        transcript.end_line()
    if turn.thread_id and not as_json:
        transcript.note(f"thread {turn.thread_id}")
    if last not in EXIT_CODES:
        say(f"{HEAD}the turn has ended, and this program cannot tell how")
    sys.exit(EXIT_CODES.get(last, FAILED))


def _print_json(event: Event) -> None:
    # A newline between JSON's tokens, which is the only place for one, means no more than a space.
    click.echo(event.raw.replace("\n", " ").encode())


def _farewell(turn: TurnStream) -> str:
    if not turn.turn_id:
        return "the turn may have been accepted; see turnkeeper queue"
    return f"the turn goes on; follow it with: turnkeeper follow {turn.turn_id}"


if __name__ == "__main__":
    main()
