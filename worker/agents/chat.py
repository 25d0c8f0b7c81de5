"""The built-in chat agent: plans, files and sub-agents by deepagents."""

from pathlib import Path

from deepagents import create_deep_agent  # pyright: ignore[reportUnknownVariableType]

from shared.errors import SettingsError
from worker.agents.registry import Deps
from worker.graph import Graph


def build(deps: Deps) -> Graph:
    """A deep agent on the given model and saver."""
    return create_deep_agent(
        model=deps.model,
        checkpointer=deps.checkpointer,
        system_prompt=_read_prompt(deps.settings.SYSTEM_PROMPT_FILE),
    )


def _read_prompt(file: Path | None) -> str | None:
    try:
        return file.read_text(encoding="utf-8") if file else None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"SYSTEM_PROMPT_FILE: {error}") from error
