"""A deep agent with todos, files and a sub-agent, whose tools and steps can be held."""

# deepagents' and LangChain's own annotations are unknown to a strict reader.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware import AgentMiddleware, AgentState, TodoListMiddleware
from langgraph.runtime import Runtime

from tests.traceless.tools import Tools
from worker.agents.registry import Deps
from worker.graph import Graph

NAME = "workshop"
MODULE = "the_workshop"
AGENTS = f"{NAME}={MODULE}:build"

PAUSE = "pause"
"""After a note of this, the agent waits before it calls the model again."""

BREAK = "break"
"""After a note of this, it waits and then fails."""

COMPACT_AT = 70
COMPACT_TO = 62
"""Of so many messages, all but the last so many are summarised."""


@contextmanager
def open_workshop() -> Generator[Tools]:
    """The tools of an agent that AGENTS finds as it finds anybody's: in a module, by its name."""
    tools = Tools()
    sys.modules[MODULE] = cast(Any, SimpleNamespace(build=partial(build, tools)))
    try:
        yield tools
    finally:
        del sys.modules[MODULE]


def build(tools: Tools, deps: Deps) -> Graph:
    """The agent; its sub-agent has the same tools."""
    tools.model = deps.model
    return create_deep_agent(
        model=deps.model,
        tools=tools.as_tools(),
        checkpointer=deps.checkpointer,
        system_prompt="You work.",
        subagents=[{"name": "helper", "description": "Helps.", "system_prompt": "You help."}],
        middleware=_middleware(tools, deps),
    )


def _middleware(tools: Tools, deps: Deps) -> list[AgentMiddleware[Any, Any, Any]]:
    """The last stands in place of deepagents' own, and summarises soon."""
    return [
        TodoListMiddleware(),
        Foreman(tools),
        SummarizationMiddleware(
            deps.model,
            backend=StateBackend(),
            trigger=("messages", COMPACT_AT),
            keep=("messages", COMPACT_TO),
        ),
    ]


class Foreman(AgentMiddleware[AgentState, Any, Any]):
    """A step before each model call, which does what the last note says."""

    def __init__(self, tools: Tools) -> None:
        super().__init__()
        self._tools = tools

    async def abefore_model(self, state: AgentState, runtime: Runtime) -> None:
        word = state["messages"][-1].text
        if word == PAUSE:
            await self._tools.wait(word)
        elif word == BREAK:
            await self._tools.fail(word)
