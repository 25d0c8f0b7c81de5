"""The commands as processes: pipes, and those that make way for another process."""

import json
from pathlib import Path

import pytest

from tests.command import command
from tests.fake_api import FakeApi, Reply, events, numbered
from tests.terminal import done, stream, text


def test_a_stdout_that_cannot_write_everything(fake_api: FakeApi):
    lines = numbered(text("é→"), done())
    fake_api.script = [Reply(events(*lines))]
    with command(fake_api, "ask", "Hi", PYTHONIOENCODING="ascii") as process:
        assert process.communicate()[0] == b"??\n"
    with command(fake_api, "ask", "Hi", "--json", PYTHONIOENCODING="ascii") as process:
        assert process.communicate()[0].decode().splitlines() == lines
        assert process.returncode == 0


def test_a_reader_that_goes_away(fake_api: FakeApi):
    fake_api.script = [stream(*(text("x" * 4096) for _ in range(500)), done())]
    with command(fake_api, "ask", "Hi") as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(1)
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait() == 1


@pytest.mark.parametrize(
    ("arguments", "module", "handed_on"),
    [
        (["api"], "api", []),
        (["worker"], "worker", []),
        (["worker", "--wait"], "worker", ["--wait"]),
    ],
    ids=str,
)
def test_a_process_takes_the_command_over(
    arguments: list[str], module: str, handed_on: list[str], fake_api: FakeApi, tmp_path: Path
):
    program = "import json, os, sys\nprint(json.dumps([os.getpid(), sys.argv[1:]]))"
    folder = tmp_path / module
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "__main__.py").write_text(program)
    with command(fake_api, *arguments, PYTHONPATH=str(tmp_path)) as process:
        said, _ = process.communicate()
    assert json.loads(said) == [process.pid, handed_on]
