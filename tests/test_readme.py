"""Every command of the README is run: here, by another test, by .ci/run, or by hand."""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from tests.manual import README, commands, files
from tests.up_process import run_up

STARTED = {
    "pip install uv && uv run turnkeeper up": "tests/test_up.py",
    "AGENTS=mine=my_agents:build PYTHONPATH=. uv run turnkeeper up": "tests/test_readme.py",
    "uv run turnkeeper worker": "tests/test_worker_process.py",
    "uv run turnkeeper api": "tests/test_api_server.py",
    "uv run python -m tests.bench.latency": "tests/test_bench.py",
    "uv run python -m tests.bench.cancel": "tests/test_bench.py",
    "uv run python -m tests.bench.restore": "tests/test_bench.py",
    "uv run python -m tests.fuzz.cancels 1000": "tests/test_cancel_fuzz.py",
    "uv run python -m tests.chaos 500": "tests/test_chaos.py",
    "uv run pytest": ".ci/run",
    "bash .ci/run": ".ci/run",
}
"""What does not end by itself, or is what runs this: the file in which it is run."""

BY_HAND = {
    "MODEL_FILE=my-model.gguf docker compose up",
    "LLAMA_BASE_URL=http://host.docker.internal:8080/v1 docker compose up redis worker api",
}
"""What needs Docker."""

ADDRESS = "http://127.0.0.1:8010"


def asked() -> list[str]:
    """The commands that ask something of a service that runs."""
    return [command for command in commands() if command not in STARTED.keys() | BY_HAND]


def test_every_command_is_accounted_for() -> None:
    assert STARTED.keys() | BY_HAND <= set(commands())
    assert all((README.parent / place).exists() for place in STARTED.values())
    others = [c for c in asked() if not c.startswith(("curl ", "uv run turnkeeper "))]
    assert others == []


async def test_what_is_asked_of_a_service_is_answered(tmp_path: Path) -> None:
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    agents = {"AGENTS": "mine=my_agents:build", "PYTHONPATH": str(tmp_path)}
    async with run_up(tmp_path / "data", **agents) as up:
        url = await up.ready()
        for command in asked():
            if not shutil.which(command.split()[0]):  # curl, or uv
                continue
            code, output, errors = await run(command, url)
            assert code == 0, (command, errors)
            assert output.strip(), (command, errors)
            assert '"type":"about:blank"' not in output, command


async def run(command: str, url: str) -> tuple[int | None, str, str]:
    """Exit code, output and errors of a shell's command, asked of the service at `url`."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = await asyncio.create_subprocess_shell(
        command.replace("uv run ", "").replace(ADDRESS, url),
        env={**os.environ, "PATH": path, "TURNKEEPER_URL": url},
        stdout=PIPE,
        stderr=PIPE,
    )
    output, errors = await shell.communicate()
    return shell.returncode, output.decode(), errors.decode()
