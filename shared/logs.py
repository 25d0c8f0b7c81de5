"""How a process logs: readable lines or one JSON object each."""

import logging
import sys

from pythonjsonlogger.json import JsonFormatter

CONSOLE = "%(asctime)s %(levelname)-7s %(name)s  %(message)s"
JSON = "%(asctime)s %(levelname)s %(name)s %(message)s"
QUIET = ("arq.worker", "sse_starlette", "uvicorn.error", "httpx", "httpx2", "httpcore", "openai")


def set_up_logs(level: str, form: str) -> None:
    """Sends every record of `level` and above to standard error. `form`: `console` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(JSON) if form == "json" else logging.Formatter(CONSOLE))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # These log at INFO what somebody said, each request, or what is told here in better words.
    at_least_warning = max(logging.WARNING, logging.getLevelNamesMapping()[level])
    for name in QUIET:
        logging.getLogger(name).setLevel(at_least_warning)
