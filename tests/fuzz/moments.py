"""When a turn is cancelled: at a random time, or after a random number of what can be seen."""

import asyncio
from collections.abc import Callable
from random import Random

from tests.fuzz.puts import Puts
from tests.traceless.turn import Turn
from tests.until import until

KINDS = ("time", "puts", "words", "tools")


async def pass_until(kind: str, random: Random, turn: Turn, puts: Puts, length_s: float) -> None:
    """Returns at the moment, or when the turn has ended before; `length_s`: of a usual turn."""
    if kind == "time":
        await asyncio.sleep(random.uniform(0, length_s))
        return
    most, count = {
        "puts": (40, _more(lambda: puts.count)),
        "words": (40, lambda: sum(call.n_decoded for call in turn.calls)),
        "tools": (2, _more(lambda: turn.view.tools.n_begun)),
    }[kind]
    wanted = random.randint(1, most)
    await until(lambda: count() >= wanted or turn.has_ended)


def _more(count: Callable[[], int]) -> Callable[[], int]:
    """How many more than now."""
    before = count()
    return lambda: count() - before
