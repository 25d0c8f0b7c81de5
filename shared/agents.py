"""The agents that are built in. A new one is a file in worker/agents/ and a line here."""

from typing import NamedTuple


class BuiltIn(NamedTuple):
    """`place`: its `build` as `module:attr`. `takes_text`: its turns are text, never objects."""

    place: str
    takes_text: bool


BUILT_IN = {"chat": BuiltIn("worker.agents.chat:build", takes_text=True)}
