"""The command: what is refused at once, what is run, and how the process ends."""

import argparse
import asyncio
import logging
import os
import threading

import uvloop

from shared.errors import SettingsError
from shared.logs import set_up_logs
from shared.reasons import say_reason
from shared.settings import load
from worker.database import prepare_file
from worker.errors import CannotStart
from worker.settings import WorkerSettings
from worker.stop import Stop

BROKEN = 1
"""By an error of which nobody has thought: it ends the process as well, with its traceback."""


def run(stop: Stop) -> int:
    """Runs the worker until it is told to stop; answers the exit code."""
    parser = argparse.ArgumentParser(prog="turnkeeper worker")
    parser.add_argument("--wait", action="store_true", help="wait for another owner to go")
    options = parser.parse_args()
    try:
        settings = load(WorkerSettings)
        set_up_logs(settings.LOG_LEVEL, settings.LOG_FORMAT)
        prepare_file(settings.CHECKPOINT_DB)
    except (SettingsError, CannotStart) as error:
        exit_code = _tell(error)
        stop.end(exit_code)
        return exit_code
    return uvloop.run(_serve(settings, stop, wait=options.wait))


async def _serve(settings: WorkerSettings, stop: Stop, *, wait: bool) -> int:
    """Serves, and ends the process if an agent's task or thread would not let it end."""
    stop.take_over()
    # Read when LangGraph is imported: types in the database that nobody registered stay shut.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    # Imported only now, as it takes seconds: what cannot be used is told at once.
    from worker.main import serve

    exit_code = BROKEN
    try:
        await serve(settings, wait=wait, signals=stop)
        exit_code = 0
    except (SettingsError, CannotStart) as error:
        exit_code = _tell(error)
    finally:
        stop.end(exit_code)
    if _is_held_up():
        logging.shutdown()
        os._exit(exit_code)
    return exit_code


def _is_held_up() -> bool:
    threads = [thread for thread in threading.enumerate() if not thread.daemon]
    return len(threads) > 1 or len(asyncio.all_tasks()) > 1


def _tell(error: SettingsError | CannotStart) -> int:
    say_reason(error)
    return error.exit_code if isinstance(error, CannotStart) else 2
