"""A turn's chunks reach Redis in order, once each, whatever Redis does."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shared.chunks import Agent, Chunk, Source, Text, ToolCall, ToolUse
from shared.claims import Claims
from shared.errors import Fenced, RedisAway
from shared.record import TurnRecord
from shared.redis import open_redis
from shared.turns import Turns
from tests.redis_seen import log_of, looking
from tests.turns_made import LIFETIMES, claimed_turn, start
from tests.until import until
from tests.valkey import run_valkey, valkey_url
from worker import insist, publisher
from worker.publisher import open_publisher

TURN = claimed_turn(seq=1)


class FarSide(Claims):
    """Redis as a publisher meets it: a line that may be busy, an outage, a loss, another claim."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.sent: dict[int, set[str]] = {}
        self.free = asyncio.Event()
        self.free.set()
        self.outages = 0
        self.lost = 0
        self.fenced = False

    async def publish(self, turn: TurnRecord, seq: int, chunk: Chunk) -> int:
        self.sent.setdefault(seq, set()).add(chunk.content)
        await self.free.wait()
        if self.outages:
            self.outages -= 1
            raise RedisAway("Redis cannot be reached.")
        if self.fenced:
            raise Fenced("Claim 1 is not the last one.")
        if seq == turn.seq + len(self.chunks) + 1:
            self.chunks.append(chunk)
        if self.lost:
            del self.chunks[-self.lost :]
            self.lost = 0
        return turn.seq + len(self.chunks)

    @property
    def contents(self) -> list[str]:
        """What was taken, in order."""
        return [chunk.content for chunk in self.chunks]


@pytest.fixture
def far() -> FarSide:
    return FarSide()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(insist, "RETRY_S", 0.002)


def say(content: str, message_id: str = "m", agent: Agent | None = None) -> Text:
    return Text(turn_id="turn", content=content, metadata=Source(message_id, agent or []))


def use(name: str) -> ToolUse:
    metadata = ToolCall(call_id=name, name=name, args={})
    return ToolUse(turn_id="turn", content=name, metadata=metadata)


@asynccontextmanager
async def busy(far: FarSide) -> AsyncGenerator[publisher.Publisher]:
    """A publisher whose first chunk, "first", is under way until the far side is set free."""
    far.free.clear()
    async with open_publisher(far, TURN) as line:
        line.put(say("first"))
        await until(lambda: far.sent)
        yield line
        far.free.set()


async def test_chunks_arrive_in_order_with_their_numbers(far: FarSide) -> None:
    put = [use(str(number)) for number in range(20)]
    async with open_publisher(far, TURN) as line:
        for chunk in put:
            line.put(chunk)
    assert far.chunks == put
    assert sorted(far.sent) == list(range(2, 22))


async def test_nothing_put_is_nothing_sent(far: FarSide) -> None:
    async with open_publisher(far, TURN):
        pass
    assert far.sent == {}


async def test_text_goes_out_at_once_and_then_by_the_frame(
    far: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "FRAME_S", 3600)
    async with open_publisher(far, TURN) as line:
        line.put(say("now"))
        await until(lambda: far.contents == ["now"])
        line.put(say("with"))
        line.put(say(" the next frame"))
        await asyncio.sleep(0)
        assert far.contents == ["now"]
    # The end waits for no frame.
    assert far.contents == ["now", "with the next frame"]


async def test_text_of_a_slow_model_is_not_held_back(far: FarSide) -> None:
    async with open_publisher(far, TURN) as line:
        for number in range(5):
            line.put(say(f"{number}"))
            await until(lambda: "".join(far.contents).endswith(f"{number}"))  # noqa: B023
    assert far.contents == ["0", "1", "2", "3", "4"]


async def test_text_that_comes_while_a_chunk_is_under_way_is_one_chunk(far: FarSide) -> None:
    async with busy(far) as line:
        for number in range(100):
            line.put(say(f" {number}"))
    assert far.contents == ["first", "".join(f" {number}" for number in range(100))]


async def test_only_text_of_the_same_message_and_speaker_is_joined(far: FarSide) -> None:
    put: list[Chunk] = [
        say("a"),
        say("b", message_id="another"),
        say("c", message_id="another", agent=["helper"]),
        use("ls"),
        say("d", message_id="another", agent=["helper"]),
    ]
    async with busy(far) as line:
        for chunk in put:
            line.put(chunk)
            if isinstance(chunk, Text):
                line.put(chunk)
    assert [chunk.metadata for chunk in far.chunks[1:]] == [chunk.metadata for chunk in put]
    assert far.contents == ["first", "aa", "bb", "cc", "ls", "dd"]


async def test_nothing_is_lost_or_doubled_while_redis_is_away(far: FarSide) -> None:
    far.outages = 3
    async with open_publisher(far, TURN) as line:
        for number in range(50):
            if number == 25:
                await until(lambda: not far.outages)
                far.outages = 3
            line.put(say(f"{number} "))
            line.put(use(f"tool-{number} "))
    expected = "".join(f"{number} tool-{number} " for number in range(50))
    assert "".join(far.contents) == expected


async def test_what_redis_lost_is_sent_again(far: FarSide) -> None:
    async with open_publisher(far, TURN) as line:
        for name in ("one", "two", "three"):
            line.put(use(name))
        await until(lambda: len(far.chunks) == 3)
        far.lost = 3
        line.put(use("four"))
    assert far.contents == ["one", "two", "three", "four"]


async def test_a_chunk_that_was_sent_never_changes(far: FarSide) -> None:
    # A follower that has it drops it when it comes again, with whatever it says more.
    async with open_publisher(far, TURN) as line:
        line.put(use("one"))
        line.put(say("two"))
        await until(lambda: len(far.chunks) == 2)
        far.chunks.clear()
        far.free.clear()
        line.put(say(" three"))
        await until(lambda: 4 in far.sent)
        far.free.set()
        await until(lambda: len(far.chunks) > 0)
        line.put(say(" four"))
    assert "".join(far.contents) == "onetwo three four"
    assert all(len(contents) == 1 for contents in far.sent.values())


async def test_what_was_put_before_a_failure_is_still_told(far: FarSide) -> None:
    async def fail() -> None:
        async with busy(far) as line:
            line.put(say("last words"))
            far.free.set()
            raise RuntimeError("the agent failed")

    with pytest.raises(RuntimeError, match="the agent failed"):
        await fail()
    assert "".join(far.contents) == "firstlast words"


async def test_a_claim_that_is_not_the_last_stops_at_the_end(far: FarSide) -> None:
    async def publish() -> None:
        async with open_publisher(far, TURN) as line:
            line.put(use("one"))
            line.put(use("two"))

    far.fenced = True
    with pytest.raises(Fenced):
        await publish()
    assert far.chunks == []
    assert set(far.sent) == {2}


async def test_a_claim_that_is_not_the_last_stops_whoever_puts(far: FarSide) -> None:
    async def publish() -> None:
        async with open_publisher(far, TURN) as line:
            while True:
                line.put(use("ls"))
                await asyncio.sleep(0)

    far.fenced = True
    with pytest.raises(Fenced):
        await asyncio.wait_for(publish(), 5)


async def test_a_cancelled_publisher_ends_at_once(far: FarSide) -> None:
    far.outages = 1_000_000

    async def publish() -> None:
        async with open_publisher(far, TURN) as line:
            line.put(use("ls"))
            await asyncio.Event().wait()

    publishing = asyncio.create_task(publish())
    await until(lambda: far.sent)
    publishing.cancel()
    done, _ = await asyncio.wait({publishing}, timeout=1)
    assert done
    assert publishing.cancelled()


async def test_a_real_outage_loses_and_doubles_nothing() -> None:
    gone = asyncio.Event()

    async def publish(claims: Claims, turn: TurnRecord) -> None:
        async with open_publisher(claims, turn) as line:
            line.put(say("before "))
            await gone.wait()
            for number in range(20):
                line.put(say(f"{number} "))
                line.put(use(f"{number} "))

    with tempfile.TemporaryDirectory(prefix="tk") as name:
        folder = Path(name)
        async with open_redis(valkey_url(folder)) as redis:
            claims = Claims(redis, LIFETIMES)
            async with run_valkey(folder):
                turn = await start(Turns(redis, LIFETIMES), claims)
                publishing = asyncio.create_task(publish(claims, turn))
                with looking(valkey_url(folder)) as seen:
                    await until(lambda: len(log_of(seen, turn.turn_id)) == 2)
            gone.set()
            async with run_valkey(folder):
                await publishing
                with looking(valkey_url(folder)) as seen:
                    told = log_of(seen, turn.turn_id)[1:]
    expected = "before " + "".join(f"{number} {number} " for number in range(20))
    assert "".join(chunk["content"] for chunk in told) == expected
    assert [chunk["id"] for chunk in told] == [f"{seq}-0" for seq in range(2, len(told) + 2)]
