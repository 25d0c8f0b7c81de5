"""Processes that live and end together."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, NoReturn, Self

from api.local.child import Child
from api.local.console import Console
from api.local.errors import PartDied
from api.local.part import Part


class Household:
    """What was started first is stopped last, since the others use it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._layers: list[list[Child]] = []
        self._watching: set[asyncio.Task[None]] = set()
        self._death: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Tells them to stop and waits for them, whoever cancels meanwhile."""
        for watch in self._watching:
            watch.cancel()
        stopping = asyncio.create_task(self._stop())
        while not stopping.done():
            with suppress(asyncio.CancelledError):
                await asyncio.shield(stopping)
        stopping.result()

    async def _stop(self) -> None:
        for layer in reversed(self._layers):
            await asyncio.gather(*(child.stop() for child in layer))

    async def start(self, *parts: Part) -> list[Child]:
        """Starts these, which may use what was started before and not each other."""
        layer: list[Child] = []
        self._layers.append(layer)
        for part in parts:
            child = await Child.start(part, self._console)
            layer.append(child)
            self._watching.add(asyncio.create_task(self._watch(child)))
        return layer

    async def live(self, beginning: Coroutine[Any, Any, None]) -> NoReturn:
        """Goes through `beginning`, then waits; raises PartDied when a process ends meanwhile."""
        begun = asyncio.create_task(beginning)
        try:
            await asyncio.wait({begun, self._death}, return_when=asyncio.FIRST_COMPLETED)
            if begun.done():
                begun.result()
            obituary = await self._death
            self._console.tell("up", f"{obituary}; stopping the rest")
            raise PartDied(obituary)
        finally:
            begun.cancel()
            await asyncio.wait({begun})

    async def _watch(self, child: Child) -> None:
        obituary = await child.obituary()
        if not self._death.done():
            self._death.set_result(obituary)
