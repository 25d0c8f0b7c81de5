"""A turn's chunks reach Redis once each, whatever Redis does."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from shared.claims import Claims
from shared.record import TurnRecord
from shared.redis import open_redis
from shared.turns import Turns
from tests.far_side import LOG, TURN, FarSide, say, use
from tests.redis_seen import log_of, looking
from tests.turns_made import LIFETIMES, entry, queued, start
from tests.until import until
from tests.valkey import run_valkey, valkey_url
from worker import insist
from worker.publisher import open_publisher


@pytest.fixture
def far() -> FarSide:
    return FarSide()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(insist, "RETRY_S", 0.002)


async def test_nothing_is_lost_or_doubled_while_redis_is_away(far: FarSide) -> None:
    far.outages = 3
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
        for number in range(50):
            if number == 25:
                await until(lambda: not far.outages)
                far.outages = 3
            line.put(say(f"{number} "))
            line.put(use(f"tool-{number} "))
    expected = "".join(f"{number} tool-{number} " for number in range(50))
    assert "".join(far.contents) == expected


async def test_what_redis_lost_is_sent_again(far: FarSide) -> None:
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
        for name in ("one", "two", "three"):
            line.put(use(name))
        await until(lambda: len(far.chunks) == 3)
        far.lost = 3
        line.put(use("four"))
    assert far.contents == ["one", "two", "three", "four"]


async def test_a_redis_that_has_forgotten_the_turn_is_given_all_of_it_again(far: FarSide) -> None:
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
        for name in ("one", "two"):
            line.put(use(name))
        await until(lambda: len(far.chunks) == 2)
        far.forget()
        line.put(use("three"))
    assert far.contents == ["one", "two", "three"]
    assert far.revived == ["running"]


async def test_it_is_given_it_too_when_the_turn_has_nothing_to_say(far: FarSide) -> None:
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
        line.put(use("one"))
        line.put(use("two"))
        await until(lambda: len(far.chunks) == 2)
        far.forget()
        line.probe()
        await until(lambda: far.contents == ["one", "two"])
        assert far.revived == ["running"]


async def test_whoever_asks_hears_of_a_cancel(far: FarSide) -> None:
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
        line.probe()
        await until(lambda: far.sent)
        assert far.heard_cancels == 0
        far.cancelling = True
        line.probe()
        await until(lambda: far.heard_cancels)
    assert far.contents == []


async def test_a_chunk_that_was_sent_never_changes(far: FarSide) -> None:
    # A follower that has it drops it when it comes again, with whatever it says more.
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
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


async def test_a_cancelled_publisher_ends_at_once(far: FarSide) -> None:
    far.outages = 1_000_000

    async def publish() -> None:
        async with open_publisher(far, TURN, LOG, far.cancel) as line:
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
        async with open_publisher(claims, turn, [entry(1, queued(turn))], lambda: None) as line:
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
