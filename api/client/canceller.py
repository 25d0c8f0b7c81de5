"""The cancel of a turn that is followed meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from api.client.errors import ConnectionBroken, Problem, Unreachable
from api.client.patience import Patience
from api.client.turn_stream import TurnStream
from api.client.turnkeeper import TurnkeeperClient
from shared.errors import TurnkeeperError


class Canceller:
    """Cancels a turn once that is wanted and its id is known; use `open_canceller`."""

    def __init__(
        self, client: TurnkeeperClient, turn: TurnStream, tell: Callable[[str], None]
    ) -> None:
        self._client = client
        self._turn = turn
        self._tell = tell
        self._wanted = asyncio.Event()

    def want(self) -> None:
        """The turn is to be cancelled, also when it is not known yet."""
        self._turn.sought = True
        self._wanted.set()

    async def want_after(self, seconds: float) -> None:
        """Wants it so long after the turn's acceptance."""
        await self._turn.accepted.wait()
        await asyncio.sleep(seconds)
        self.want()

    async def run(self) -> None:
        """Waits for that, and then asks the server until it has answered."""
        await self._wanted.wait()
        self._tell("cancelling …")
        await self._turn.accepted.wait()
        try:
            await self._cancel()
        except TurnkeeperError as error:
            self._tell(f"the turn cannot be cancelled: {error}")
        else:
            self._turn.cancelled = True

    async def _cancel(self) -> None:
        patience = Patience(self._client.clock)
        while True:
            try:
                await self._client.cancel(self._turn.turn_id)
                return
            except (ConnectionBroken, Unreachable, Problem) as error:
                refused = isinstance(error, Problem) and error.status < 500
                if refused or not await patience.wait():
                    raise


@asynccontextmanager
async def open_canceller(
    client: TurnkeeperClient,
    turn: TurnStream,
    tell: Callable[[str], None],
    after_s: float | None = None,
) -> AsyncGenerator[Canceller]:
    """A canceller at work until the block ends; `after_s`: it need not be told to."""
    canceller = Canceller(client, turn, tell)
    tasks = [asyncio.create_task(canceller.run())]
    if after_s is not None:
        tasks.append(asyncio.create_task(canceller.want_after(after_s)))
    try:
        yield canceller
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
