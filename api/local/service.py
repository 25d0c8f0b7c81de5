"""The worker and the API, as `turnkeeper up` starts them."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from api.local.llama import HOST
from api.local.options import Options
from api.local.part import Part
from api.local.valkey import socket_url


def service_environment(options: Options, socket: Path, llama_port: int) -> dict[str, str]:
    """Where the servers are, the embedded ones or those of one's own, and where the data is."""
    database = os.environ.get("CHECKPOINT_DB") or str(options.data / "checkpoints.sqlite")
    return {
        "REDIS_URL": options.redis_url or socket_url(socket),
        "LLAMA_BASE_URL": options.llama_base_url or f"http://{HOST}:{llama_port}/v1",
        "CHECKPOINT_DB": database,
        "API_PORT": str(options.port),
    }


def worker_part(environment: Mapping[str, str]) -> Part:
    """`turnkeeper worker`."""
    return Part("worker", [sys.executable, "-P", "-m", "worker"], environment)


def api_part(environment: Mapping[str, str]) -> Part:
    """`turnkeeper api`."""
    return Part("api", [sys.executable, "-P", "-m", "api"], environment)
