"""Finds and builds the agents that turns may name."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module

from shared.errors import SettingsError
from worker.graph import Graph, Model, Saver
from worker.settings import WorkerSettings

BUILT_IN = {"chat": "worker.agents.chat:build"}


@dataclass(frozen=True)
class Deps:
    """What an agent is built from. Any saver will do, so that it can be run outside the service."""

    model: Model
    checkpointer: Saver
    settings: WorkerSettings


Build = Callable[[Deps], Graph | Awaitable[Graph]]


async def build_agents(deps: Deps) -> dict[str, Graph]:
    """All agents by name; raises SettingsError when one of AGENTS cannot be imported."""
    places = {**BUILT_IN, **deps.settings.agents}
    return {name: await _build(find(place), deps) for name, place in places.items()}


def find(place: str) -> Build:
    """The function at `module:attr`."""
    module, _, attr = place.partition(":")
    try:
        return getattr(import_module(module), attr)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"AGENTS: {place} cannot be imported: {error}") from error


async def _build(build: Build, deps: Deps) -> Graph:
    graph = build(deps)
    return await graph if inspect.isawaitable(graph) else graph
