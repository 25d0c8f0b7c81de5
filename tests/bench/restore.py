"""How long it takes to fence a thread and to restore it, by how much it holds.

`uv run python -m tests.bench.restore [TIMES [MESSAGES …]]` prints medians and maxima in
milliseconds over so many turns (20) on threads of 10, 200 and 2,000 messages, each as it has grown
and then sealed. Each turn is cancelled in its second model call, after a tool.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from tests.turns_made import claimed_turn, done
from worker.agents.registry import Deps, build_agents
from worker.checkpoints import TurnSaver, open_checkpoints
from worker.ending import Ending
from worker.gate import CURRENT_TURN
from worker.graph import Graph
from worker.memory import Memory
from worker.seal import FROM_ROWS
from worker.settings import WorkerSettings

TIMES = 20
MESSAGES = (10, 200, 2000)
LOOK: dict[str, Any] = {"name": "ls", "args": {"path": "/"}}


class Model(BaseChatModel):
    """Calls a tool so many times and then answers, or waits until it is cancelled."""

    calls: int = 0
    waits: bool = False
    waiting: Any = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_: Any, **__: Any) -> "Model":  # pyright: ignore
        return self

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if self.calls:
            self.calls -= 1
            call = {**LOOK, "id": f"call {len(messages)}"}
            message = AIMessage("x" * 400, tool_calls=[call])
        elif self.waits:
            self.waiting.set()
            await asyncio.Event().wait()
            raise AssertionError
        else:
            message = AIMessage("That is all.")
        return ChatResult(generations=[ChatGeneration(message=message)])


@dataclass
class Figures:
    """Milliseconds of each part."""

    fence: list[float] = field(default_factory=list[float])
    count: list[float] = field(default_factory=list[float])
    restore: list[float] = field(default_factory=list[float])


async def timed(work: Awaitable[Any], figures: list[float]) -> Any:
    """What `work` answers."""
    began = time.perf_counter()
    answer = await work
    figures.append((time.perf_counter() - began) * 1000)
    return answer


async def run(memory: Memory, graph: Graph) -> None:
    """The turn's part of the work."""
    CURRENT_TURN.set(memory.gate.turn)
    config: Any = {"configurable": {"thread_id": "thread"}, "recursion_limit": 10**5}
    await cast(Any, graph).ainvoke({"messages": [("user", "Go on.")]}, config)


async def fill(memory: Memory, graph: Graph, model: Model, messages: int) -> None:
    """One turn of so many messages."""
    model.calls, model.waits = (messages - 2) // 2, False
    await memory.begin(turn := claimed_turn(turn_id="first"))
    await asyncio.create_task(run(memory, graph))
    await memory.drain()
    await memory.commit(Ending(turn=turn, chunk=done(turn)))


async def cancel(memory: Memory, graph: Graph, model: Model, number: int, figures: Figures) -> None:
    """One turn that is undone."""
    model.calls, model.waits, model.waiting = 1, True, asyncio.Event()
    turn = claimed_turn(turn_id=f"turn {number}")
    await timed(memory.begin(turn), figures.fence)
    running = asyncio.create_task(run(memory, graph))
    await model.waiting.wait()
    fence = await memory.fence_of("thread")
    assert fence
    # LangGraph puts in the background.
    while await memory.count_added(fence, "chat") != 3:
        await asyncio.sleep(0.01)
    memory.gate.close()
    running.cancel()
    await asyncio.wait({running})
    assert await timed(memory.count_added(fence, "chat"), figures.count) == 3
    await timed(memory.restore(fence, None), figures.restore)


async def measure(saver: TurnSaver, messages: int, times: int) -> None:
    """A line for the thread as it grew, and one for it sealed."""
    model = Model()
    agents = await build_agents(Deps(model, saver, WorkerSettings()))
    memory, graph = Memory(saver, agents), agents["chat"]
    await fill(memory, graph, model, messages)
    await report(
        saver, f"{messages} messages, never sealed", await repeat(memory, graph, model, times)
    )
    if await count_rows(saver) >= FROM_ROWS:
        await memory.shorten(claimed_turn())
        await report(
            saver, f"{messages} messages, sealed", await repeat(memory, graph, model, times)
        )


async def repeat(memory: Memory, graph: Graph, model: Model, times: int) -> Figures:
    """So many turns, each undone."""
    figures = Figures()
    for number in range(times):
        await cancel(memory, graph, model, number, figures)
    return figures


async def count_rows(saver: TurnSaver) -> int:
    """Of the thread."""
    [(checkpoints,)] = await saver.conn.execute_fetchall("SELECT count(*) FROM checkpoints")
    [(writes,)] = await saver.conn.execute_fetchall("SELECT count(*) FROM writes")
    return checkpoints + writes


async def report(saver: TurnSaver, name: str, figures: Figures) -> None:
    """One line."""
    parts = [
        f"{part} {statistics.median(values):6.1f} (most {max(values):6.1f})"
        for part, values in vars(figures).items()
    ]
    sys.stdout.write(f"{name:<30} {await count_rows(saver):>6} rows, ms: {'  '.join(parts)}\n")


async def main(times: int, sizes: Sequence[int]) -> None:
    """Measures each size on a database of its own."""
    with tempfile.TemporaryDirectory(prefix="tk") as name:
        for messages in sizes:
            async with open_checkpoints(Path(name) / f"{messages}.sqlite") as saver:
                await measure(saver, messages, times)


def read_arguments() -> argparse.Namespace:
    """What the command is given."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.restore", description=__doc__)
    parser.add_argument(
        "times", metavar="TIMES", nargs="?", type=int, default=TIMES, help="%(default)s by default"
    )
    parser.add_argument(
        "messages", metavar="MESSAGES", nargs="*", type=int, default=MESSAGES, help="of each thread"
    )
    return parser.parse_args()


if __name__ == "__main__":
    given = read_arguments()
    asyncio.run(main(given.times, given.messages))
