"""Finds and builds the agents that turns may name."""

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from shared.agents import BUILT_IN
from shared.errors import SettingsError
from worker.graph import CompiledGraph, Graph, Model, Saver
from worker.settings import WorkerSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Deps:
    """What an agent is built from. Any saver will do, so that it can be run outside the service."""

    model: Model
    checkpointer: Saver
    settings: WorkerSettings


Build = Callable[[Deps], Graph | Awaitable[Graph]]


async def build_agents(deps: Deps) -> dict[str, Graph]:
    """All agents by name; raises SettingsError when one of AGENTS cannot be built."""
    built_in = {name: await _build(find(agent.place), deps) for name, agent in BUILT_IN.items()}
    others = {
        name: await _build_theirs(place, deps) for name, place in deps.settings.agents.items()
    }
    return {**built_in, **others}


def find(place: str) -> Build:
    """What stands at `module:attr`."""
    module, _, attr = place.partition(":")
    return getattr(import_module(module), attr)


async def _build(build: Build, deps: Deps) -> Graph:
    graph = build(deps)
    return await graph if inspect.isawaitable(graph) else graph


async def _build_theirs(place: str, deps: Deps) -> Graph:
    try:
        graph = await _build(find(place), deps)
        if not isinstance(cast(object, graph), CompiledGraph):
            raise TypeError(f"it built a {type(graph).__name__}, not a compiled graph")
        return graph
    except Exception as error:  # their code may fail in any way
        log.debug("AGENTS: %s", place, exc_info=error)
        reason = " ".join(str(error).split())
        raise SettingsError(
            f"AGENTS: {place} cannot be built: {type(error).__name__}: {reason}"
        ) from error
