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


def run_up(data: Path, port: int | None, model: Path | None) -> None:
    """Runs until it is told to stop; raises TurnkeeperError."""
    interruption = Interruption()
    settings = load(ApiSettings, **({} if port is None else {"API_PORT": port}))
    llama_base_url = os.environ.get("LLAMA_BASE_URL") or None
    options = Options(
        data=data.absolute(),
        database=Path(os.environ.get("CHECKPOINT_DB") or data.absolute() / "checkpoints.sqlite"),
        host=settings.API_HOST,
        port=settings.API_PORT,
        guarded=settings.token is not None,
        model=_choose_model(model, llama_base_url),
        redis_url=os.environ.get("REDIS_URL") or None,
        llama_base_url=llama_base_url,
    )
    _check(options)
    asyncio.run(up(options, interruption))


def _choose_model(model: Path | None, llama_base_url: str | None) -> Path | None:
    if llama_base_url is None:
        return model or llama.find_model()
    if model is not None:
        raise CannotStart("--model is for the server started here, LLAMA_BASE_URL names another.")
    return None


def _check(options: Options) -> None:
    if options.redis_url is None:
        valkey.check_installed()
    if options.model is not None:
        llama.check_installed()
        llama.check_model(options.model)
