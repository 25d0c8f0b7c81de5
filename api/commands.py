"""The commands of `turnkeeper`."""

import io
import os
import sys
from pathlib import Path
from typing import Any, NoReturn, cast

import click

from api.client.commands import CLIENT_COMMANDS
from api.client.terminal import say
from shared.errors import TurnkeeperError
from shared.reasons import HEAD

FAILED = 1


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
def commands() -> None:
    """Durable chat turns for one local model."""
    if cast(Any, sys.stdout) is None:  # closed by whoever started this
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    cast("io.TextIOWrapper[Any]", sys.stdout).reconfigure(errors="replace")


@commands.command()
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


@commands.command("api")
def run_api() -> None:
    """Run the API process."""
    _become("api")


@commands.command("worker")
@click.option("--wait", is_flag=True, help="Wait for another owner of the database to go.")
def run_worker(wait: bool) -> None:
    """Run the worker process."""
    _become("worker", *(["--wait"] if wait else []))


def _become(module: str, *arguments: str) -> NoReturn:
    # The process itself is replaced, so that signals reach the one they are meant for; -P, lest a
    # folder of the same name where the command is typed is taken for the module.
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *arguments])


for command in CLIENT_COMMANDS:
    commands.add_command(command)
