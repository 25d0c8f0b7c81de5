"""`python -m worker`: the one process that owns the slot and the checkpoint database.

Exits 2 on a bad setting, 3 when the database cannot be opened, 1 when another worker owns it.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import uvloop

from shared.errors import SettingsError
from shared.logs import set_up_logs
from shared.reasons import say_reason
from shared.settings import load
from shared.signals import STOP, ignore_stop_signals
from worker.database import prepare_file
from worker.errors import CannotStart
from worker.settings import WorkerSettings


def main() -> int:
    """Runs the worker until it is told to stop; answers the exit code."""
    parser = argparse.ArgumentParser(prog="turnkeeper worker")
    parser.add_argument("--wait", action="store_true", help="wait for another owner to go")
    options = parser.parse_args()
    for number in STOP:
        signal.signal(number, _quit)
    try:
        _run(load(WorkerSettings), wait=options.wait)
    except SettingsError as error:
        return _say(error, 2)
    except CannotStart as error:
        return _say(error, error.exit_code)
    return 0


def _quit(*_: object) -> None:
    """Until there is something to stop in order; SystemExit might be caught by what is imported."""
    os._exit(0)


def _run(settings: WorkerSettings, *, wait: bool) -> None:
    set_up_logs(settings.LOG_LEVEL, settings.LOG_FORMAT)
    prepare_file(settings.CHECKPOINT_DB)
    # Read when LangGraph is imported: types in the database that nobody registered stay shut.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    # Imported only now, as it takes seconds: what cannot be used is told at once.
    from worker.main import serve

    uvloop.run(_serve_and_leave(serve(settings, wait=wait)))


async def _serve_and_leave(serving: Coroutine[Any, Any, None]) -> None:
    """Serves, and ends the process if an agent's task or thread would not let it end."""
    me = asyncio.current_task()
    assert me
    # Until there is a queue to stop in order: waiting for another owner or for Redis, say.
    for number in STOP:
        asyncio.get_running_loop().add_signal_handler(number, me.cancel)
    with suppress(asyncio.CancelledError):
        await serving
    ignore_stop_signals()
    others = asyncio.all_tasks() - {me}
    threads = [thread for thread in threading.enumerate() if not thread.daemon]
    if others or len(threads) > 1:
        logging.shutdown()
        os._exit(0)


def _say(error: Exception, exit_code: int) -> int:
    say_reason(error)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
