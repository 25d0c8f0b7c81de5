"""From the command line and the environment to a running `up`."""

import asyncio
import os
from pathlib import Path

from api.local import llama, valkey
from api.local.errors import CannotStart
from api.local.interruption import Interruption
from api.local.options import Options
from api.local.up import up
from api.settings import ApiSettings
from shared.settings import load


def run_up(data: str, port: int | None, model: Path | None, interruption: Interruption) -> None:
    """Runs until it is told to stop; raises TurnkeeperError."""
    settings = load(ApiSettings, **({} if port is None else {"API_PORT": port}))
    folder = _choose_folder(data)
    llama_base_url = os.environ.get("LLAMA_BASE_URL") or None
    options = Options(
        data=folder,
        database=Path(os.environ.get("CHECKPOINT_DB") or folder / "checkpoints.sqlite"),
        host=settings.API_HOST,
        port=settings.API_PORT,
        guarded=settings.token is not None,
        model=_choose_model(model, llama_base_url),
        redis_url=os.environ.get("REDIS_URL") or None,
        llama_base_url=llama_base_url,
    )
    _check(options)
    try:
        asyncio.run(up(options, interruption))
    except OSError as error:  # no memory, no descriptor, no process to be had
        raise CannotStart(f"The system refuses what is needed: {error}.") from error


def _choose_folder(data: str) -> Path:
    if not data.strip():
        raise CannotStart("--data is empty.")
    try:
        data.encode()
        return Path(data).resolve()
    except UnicodeEncodeError:
        raise CannotStart("--data must be UTF-8.") from None
    except OSError as error:
        raise CannotStart(f"The folder {data} cannot be found: {error.strerror}.") from None


def _choose_model(model: Path | None, llama_base_url: str | None) -> Path | None:
    if llama_base_url is None:
        llama.check_installed()
        return model or llama.find_model()
    if model is not None:
        raise CannotStart("--model is for the server started here, LLAMA_BASE_URL names another.")
    return None


def _check(options: Options) -> None:
    if options.redis_url is None:
        valkey.check_installed()
    if options.model is not None:
        llama.check_model(options.model)
