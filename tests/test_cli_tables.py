"""The queue and the status, as tables for people and as JSON for scripts."""

import json
from typing import Any

import pytest

from tests.fake_api import FakeApi, json_reply
from tests.terminal import Run


def turn(number: int, status: str, position: int | None, **fields: Any) -> dict[str, Any]:
    ids = {"turn_id": f"turn-{number}", "thread_id": f"th-{number}", "agent": "chat"}
    return {**ids, "status": status, "position": position, "eta_s": None, **fields}


QUEUE = {
    "running": turn(1, "running", 0, text="Hello\nthere"),
    "waiting": [turn(2, "queued", 1, text="x" * 80), turn(3, "queued", 2, input={"id": 7})],
    "awaiting_decision": [turn(4, "awaiting_decision", None, text="May I?")],
    "depth": 2,
    "limit": 32,
    "worker": "alive",
}

STATUS = {
    "model": "smol_lm",
    "n_ctx": 4096,
    "slot": {"busy": True, "prompt_tokens": 12, "decoded": None},
    "worker": {"alive": True, "turn_id": None, "since": 1.5},
    "queue_depth": 0,
    "llama": None,
}


def test_the_queue_is_a_table(fake_api: FakeApi, run: Run):
    fake_api.script = [json_reply(QUEUE)]
    assert run("queue").stdout.splitlines() == [
        "2 of 32 places taken, worker alive",
        "place              turn    thread  agent  input",
        "running            turn-1  th-1    chat   Hello there",
        f"1                  turn-2  th-2    chat   {'x' * 57}...",
        "2                  turn-3  th-3    chat   {'id': 7}",
        "awaiting decision  turn-4  th-4    chat   May I?",
    ]


def test_an_empty_queue_is_a_line(fake_api: FakeApi, run: Run):
    fake_api.script = [
        json_reply({**QUEUE, "running": None, "waiting": [], "awaiting_decision": []})
    ]
    assert run("queue").stdout == "2 of 32 places taken, worker alive\n"


def test_a_queue_that_cannot_be_read(fake_api: FakeApi, run: Run):
    fake_api.script = [json_reply({"depth": 0})]
    result = run("queue")
    assert result.stderr.startswith("turnkeeper: the queue cannot be read: ")
    assert result.exit_code == 1


def test_the_status_is_a_list(fake_api: FakeApi, run: Run):
    fake_api.script = [json_reply(STATUS)]
    assert run("status").stdout.splitlines() == [
        "model        smol_lm",
        "n ctx        4096",
        "slot         busy yes, prompt tokens 12, decoded n/a",
        "worker       alive yes, turn id n/a, since 1.5",
        "queue depth  0",
        "llama        n/a",
    ]


@pytest.mark.parametrize(("command", "body"), [("queue", QUEUE), ("status", STATUS)])
def test_json_as_answered(command: str, body: dict[str, Any], fake_api: FakeApi, run: Run):
    fake_api.script = [json_reply(body)]
    assert run(command, "--json").stdout == f"{json.dumps(body)}\n"
