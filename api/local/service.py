"""The worker and the API, as `turnkeeper up` starts them."""

import sys

from api.local.llama import HOST
from api.local.options import Options
from api.local.part import Part
from api.local.places import Places
from api.local.valkey import socket_url


def worker_part(options: Options, places: Places) -> Part:
    """`turnkeeper worker`."""
    return Part("worker", _run("worker"), _settings(options, places))


def api_part(options: Options, places: Places) -> Part:
    """`turnkeeper api`, on the socket that listens already."""
    fd = places.api.fileno()
    return Part("api", _run("api", "--fd", str(fd)), _settings(options, places), fds=(fd,))


def _run(module: str, *flags: str) -> list[str]:
    # -P, lest a folder of the same name where the command is typed is taken for the module.
    return [sys.executable, "-P", "-m", module, *flags]


def _settings(options: Options, places: Places) -> dict[str, str]:
    """Where the servers are, the embedded ones or those of one's own, and where the data is."""
    return {
        "REDIS_URL": options.redis_url or socket_url(places.valkey),
        "LLAMA_BASE_URL": options.llama_base_url or f"http://{HOST}:{places.llama_port}/v1",
        "CHECKPOINT_DB": str(options.database),
        "PYTHONUNBUFFERED": "1",  # what an agent prints is told when it is printed
    }
