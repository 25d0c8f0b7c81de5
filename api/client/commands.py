"""The commands that ask a service that runs."""

import asyncio
import math
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import click

from api.client.tables import describe_queue, describe_status, describe_turn
from api.client.turnkeeper import Answer, TurnkeeperClient, open_client
from api.client.viewer import Viewer

DEFAULT_URL = "http://127.0.0.1:8010"


class Seconds(click.FloatRange):
    """A length of time."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuses what is no number as well."""
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return seconds


as_json = click.option("--json", "as_json", is_flag=True, help="Print what is received, as JSON.")
the_turn = click.argument("turn_id", metavar="TURN")


@click.command()
@click.argument("text")
@click.option("--thread", "thread_id", help="The conversation to go on with; a new one otherwise.")
@click.option("--agent", help="The agent of a new conversation.")
@click.option(
    "--cancel-after",
    type=Seconds(min=0),
    metavar="S",
    help="Cancel the turn so many seconds after its acceptance.",
)
@as_json
def ask(
    text: str, thread_id: str | None, agent: str | None, cancel_after: float | None, as_json: bool
) -> None:
    """Ask one thing and stream the answer; a TEXT of - is read from standard input.

    Ctrl-C cancels the turn. Exits 0 when done, 1 on an error, 2 when cancelled, 4 when a decision
    is awaited.
    """
    if text == "-":
        text = sys.stdin.buffer.read().decode(errors="surrogateescape")
    viewer = Viewer(lambda client: client.ask(text, thread_id, agent), as_json=as_json)
    viewer.attend(_client(), cancel_after)


@click.command()
@the_turn
@as_json
def retry(turn_id: str, as_json: bool) -> None:
    """Ask again what failed or was cancelled, as a new turn; streams and exits as ask does."""
    Viewer(lambda client: client.retry(turn_id), as_json=as_json).attend(_client())


@click.command()
@the_turn
@as_json
def follow(turn_id: str, as_json: bool) -> None:
    """Stream a turn from its beginning; exits as ask does. Ctrl-C leaves it running."""
    Viewer(lambda client: client.follow(turn_id), as_json=as_json).follow(_client())


@click.command()
@the_turn
@as_json
def cancel(turn_id: str, as_json: bool) -> None:
    """Stop a turn and take what it did out of its thread again."""
    _print(lambda client: client.cancel(turn_id), describe_turn, as_json)


@click.command()
@as_json
def queue(as_json: bool) -> None:
    """Show the running turn and those that wait."""
    _print(TurnkeeperClient.queue, describe_queue, as_json)


@click.command()
@as_json
def status(as_json: bool) -> None:
    """Show the state of model, worker and Redis."""
    _print(TurnkeeperClient.status, describe_status, as_json)


CLIENT_COMMANDS = [ask, retry, follow, cancel, queue, status]


def _print(
    ask: Callable[[TurnkeeperClient], Awaitable[Answer]],
    describe: Callable[[dict[str, Any]], str],
    as_json: bool,
) -> None:
    async def get() -> Answer:
        async with _client() as client:
            return await ask(client)

    answer = asyncio.run(get())
    click.echo(answer.raw if as_json else describe(answer.body))


def _client() -> AbstractAsyncContextManager[TurnkeeperClient]:
    url = os.environ.get("TURNKEEPER_URL") or DEFAULT_URL
    return open_client(url, os.environ.get("API_TOKEN", ""))
