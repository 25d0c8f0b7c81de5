"""What the model says, by what it was last told; and what it was asked, made comparable."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.fake_llama import Call, Reply

PLAN = "Make a plan."
DELEGATE = "Ask for help."
LOOK = "What is there?"
GO_ON = "And then?"
HELP = "Look it up."
"""What a sub-agent is told."""

HISTORY = (PLAN, DELEGATE)
"""What a thread has been told before: todos, a file, and the work of a sub-agent."""

LATER = (LOOK, GO_ON)
"""What a thread is told afterwards: the model is shown files and the work of a sub-agent."""

SESSION = re.compile(r"session_[0-9a-f]{32}")
PATH = "/plan.txt"

Replies = Sequence[Reply]
Tool = tuple[str, dict[str, Any]]


def note(what: str = "noted") -> Tool:
    return "note", {"what": what}


def wait(what: str) -> Tool:
    return "wait", {"what": what}


def stay(what: str) -> Tool:
    return "stay", {"what": what}


def block(what: str) -> Tool:
    return "block", {"what": what}


def fail(what: str) -> Tool:
    return "fail", {"what": what}


def todo(content: str) -> Tool:
    return "write_todos", {"todos": [{"content": content, "status": "pending"}]}


def write(content: str) -> Tool:
    return "write_file", {"file_path": PATH, "content": content}


def edit(old: str, new: str) -> Tool:
    return "edit_file", {"file_path": PATH, "old_string": old, "new_string": new}


def delegate(task: str) -> Tool:
    return "task", {"description": task, "subagent_type": "helper"}


def calls(*tools: Tool) -> Reply:
    """An answer that calls these tools at once."""
    return Reply(tool_calls=tools)


KNOWN: Mapping[str, Replies] = {
    PLAN: [calls(todo("Begin."), write("one\n")), Reply("Planned.")],
    DELEGATE: [calls(delegate(HELP)), Reply("Helped.")],
    HELP: [calls(note("a fact")), Reply("A fact.")],
    LOOK: [calls(("ls", {"path": "/"}), ("read_file", {"file_path": PATH})), Reply("This.")],
    GO_ON: [calls(delegate(HELP), write("three\n")), Reply("That.")],
}


class Dialogue:
    """A script that keeps no account: the reply follows from the request alone."""

    def __init__(self, more: Mapping[str, Replies]) -> None:
        self._replies = {**KNOWN, **more}

    def learn(self, more: Mapping[str, Replies]) -> None:
        """From now on the model says this, too."""
        self._replies.update(more)

    def __call__(self, body: dict[str, Any]) -> Reply:
        said = 0
        for message in reversed(body["messages"]):
            if message["role"] == "assistant":
                said += 1
            elif message["role"] == "user" and message["content"] in self._replies:
                return self._replies[message["content"]][said]
        return Reply("A summary.")


def comparable(call: Call) -> dict[str, Any]:
    """The request without its random names: calls are numbered as they come."""
    text = SESSION.sub("session", json.dumps(call.body))
    for number, call_id in enumerate(_call_ids(call.body)):
        text = text.replace(call_id, f"call {number}")
    return json.loads(text)


def _call_ids(body: dict[str, Any]) -> list[str]:
    return [
        tool_call["id"]
        for message in body["messages"]
        for tool_call in message.get("tool_calls") or ()
    ]
