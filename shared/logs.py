"""How a process logs: readable lines or one JSON object each."""

import logging
import sys

from pythonjsonlogger.json import JsonFormatter

CONSOLE = "%(asctime)s %(levelname)-7s %(name)s  %(message)s"
JSON = "%(asctime)s %(levelname)s %(name)s %(message)s"


def set_up_logs(level: str, form: str) -> None:
    """Sends every record of `level` and above to standard error. `form`: `console` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(JSON) if form == "json" else logging.Formatter(CONSOLE))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # These log a request's content or each request at INFO.
    at_least_warning = max(logging.WARNING, logging.getLevelNamesMapping()[level])
    for name in ("arq.worker", "sse_starlette", "httpx", "httpx2", "httpcore", "openai"):
        logging.getLogger(name).setLevel(at_least_warning)
