"""The built-in chat agent: plans, files and sub-agents by deepagents."""

from deepagents import create_deep_agent  # pyright: ignore[reportUnknownVariableType]

from worker.agents.registry import Deps
from worker.graph import Graph


def build(deps: Deps) -> Graph:
    """A deep agent on the given model and saver."""
    prompt = deps.settings.SYSTEM_PROMPT_FILE
    return create_deep_agent(
        model=deps.model,
        checkpointer=deps.checkpointer,
        system_prompt=prompt.read_text() if prompt else None,
    )
