"""A turn's chunks go out in order: text at once, or collected while the line is busy."""

import asyncio

import pytest

from shared.chunks import Chunk, Text
from shared.errors import Fenced
from tests.far_side import LOG, TURN, FarSide, busy, say, use
from tests.until import until
from worker import publisher
from worker.publisher import open_publisher


@pytest.fixture
def far() -> FarSide:
    return FarSide()


async def test_chunks_arrive_in_order_with_their_numbers(far: FarSide) -> None:
    put = [use(str(number)) for number in range(20)]
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
        for chunk in put:
            line.put(chunk)
    assert far.chunks == put
    assert sorted(far.sent) == list(range(2, 22))


async def test_nothing_put_is_nothing_sent(far: FarSide) -> None:
    async with open_publisher(far, TURN, LOG, far.cancel):
        pass
    assert far.sent == {}


async def test_text_goes_out_at_once_and_then_by_the_frame(
    far: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "FRAME_S", 3600)
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
        line.put(say("now"))
        await until(lambda: far.contents == ["now"])
        line.put(say("with"))
        line.put(say(" the next frame"))
        await asyncio.sleep(0)
        assert far.contents == ["now"]
    # The end waits for no frame.
    assert far.contents == ["now", "with the next frame"]


async def test_what_nothing_can_be_joined_to_waits_for_no_frame(
    far: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "FRAME_S", 3600)
    put = [use(str(number)) for number in range(20)]
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
        for chunk in put:
            line.put(chunk)
        await until(lambda: far.chunks == put[:-1])
    assert far.chunks == put


async def test_text_of_a_slow_model_is_not_held_back(far: FarSide) -> None:
    async with open_publisher(far, TURN, LOG, far.cancel) as line:
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
        async with open_publisher(far, TURN, LOG, far.cancel) as line:
            line.put(use("one"))
            line.put(use("two"))

    far.fenced = True
    with pytest.raises(Fenced):
        await publish()
    assert far.chunks == []
    assert set(far.sent) == {2}


async def test_a_claim_that_is_not_the_last_stops_whoever_puts(far: FarSide) -> None:
    async def publish() -> None:
        async with open_publisher(far, TURN, LOG, far.cancel) as line:
            while True:
                line.put(use("ls"))
                await asyncio.sleep(0)

    far.fenced = True
    with pytest.raises(Fenced):
        await asyncio.wait_for(publish(), 5)
