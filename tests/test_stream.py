"""A turn's log read back, in pages."""

import pytest

from shared import chunks, keys, stream
from shared.redis import Redis
from shared.stream import PAGE, Entry
from tests.redis_seen import RedisSeen
from tests.turns_made import claimed_turn, text


def fill(valkey: RedisSeen, count: int) -> list[Entry]:
    """A log of `count` texts, the first with number 1."""
    turn = claimed_turn()
    entries = [
        Entry(seq, "text", chunks.encode(text(turn, f"{seq}\r\x00\u2028")))
        for seq in range(1, count + 1)
    ]
    with valkey.pipeline(transaction=False) as pipe:
        for entry in entries:
            fields = {"type": entry.type, "body": entry.body}
            pipe.xadd(keys.log("turn"), fields, id=f"{entry.seq}-0")
        pipe.execute()
    return entries


async def read(redis: Redis, after: int) -> list[Entry]:
    return [entry async for entry in stream.read(redis, "turn", after)]


@pytest.mark.parametrize("count", [1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE + 500])
async def test_every_chunk_is_read_once_in_order(
    redis: Redis, valkey: RedisSeen, count: int
) -> None:
    entries = fill(valkey, count)
    assert await read(redis, 0) == entries


async def test_reading_goes_on_after_a_number(redis: Redis, valkey: RedisSeen) -> None:
    entries = fill(valkey, PAGE + 20)
    for after in (1, 9, 10, PAGE - 1, PAGE, PAGE + 19):
        assert await read(redis, after) == entries[after:]


async def test_past_the_end_there_is_nothing(redis: Redis, valkey: RedisSeen) -> None:
    assert await read(redis, 0) == []
    fill(valkey, 3)
    assert await read(redis, 3) == []
    assert await read(redis, 99) == []


async def test_what_comes_while_a_page_is_read_is_read_too(redis: Redis, valkey: RedisSeen) -> None:
    entries = fill(valkey, PAGE)
    reading = stream.read(redis, "turn", 0)
    assert await anext(reading) == entries[0]
    late = Entry(PAGE + 1, "done", b"{}")
    valkey.xadd(keys.log("turn"), {"type": late.type, "body": late.body}, id=f"{late.seq}-0")
    assert [entry async for entry in reading] == [*entries[1:], late]


def test_a_message_is_number_type_and_body() -> None:
    body = b'{"content": "with spaces \\r\\n"}'
    assert stream.parse_message(b"12 tool_result " + body) == Entry(12, "tool_result", body)


@pytest.mark.parametrize("kind", ["done", "error", "cancelled", "text", "queued", "usage"])
def test_nothing_follows_a_terminal_chunk(kind: str) -> None:
    assert Entry(1, kind, b"").terminal == (kind in {"done", "error", "cancelled"})
