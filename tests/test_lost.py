"""Whoever follows a turn holds its answer, although Redis and worker were lost at the same time."""

from collections.abc import Awaitable, Callable

import pytest

from shared import keys, stream
from shared.chunks import Text
from shared.claims import Claims
from shared.lane import Lane
from shared.record import TurnRecord
from shared.redis import Redis
from shared.stream import Entry
from shared.turns import Turns
from tests.redis_seen import RedisSeen
from tests.turns_made import LIFETIMES, accept, claim, claimed_turn, entry, queued, text
from tests.two_steps import TwoSteps, kill, stop
from worker.checkpoints import TurnSaver
from worker.lost import count_lost, replace_lost
from worker.numbering import Numbering
from worker.recovery import Recovery
from worker.rewind import hold
from worker.telling import complete_log

TURN = claimed_turn(attempt=2)

Loss = Callable[[RedisSeen, TurnRecord], None]


@pytest.fixture
def steps(redis: Redis, saver: TurnSaver, valkey: RedisSeen) -> TwoSteps:
    return TwoSteps(redis, saver, valkey)


@pytest.fixture
def restart(redis: Redis, steps: TwoSteps) -> Callable[[], Awaitable[None]]:
    """Puts all in order, as a worker does at its start."""

    async def start() -> None:
        claims, lane = Claims(redis, LIFETIMES), Lane(redis, LIFETIMES)
        await Recovery(lane, claims, steps.memory).start()
        steps.mark = claims.mark

    return start


async def leave(turns: Turns, steps: TwoSteps, *, stopped: bool = False) -> TurnRecord:
    """A turn whose worker is killed in its second step, or stopped in order."""
    turn = await accept(turns)
    running = await steps.begin(worker := steps.worker(), turn)
    await (stop(worker, running) if stopped else kill(running))
    return turn


async def follow(redis: Redis, turn: TurnRecord, after: int = 0) -> list[Entry]:
    return [entry async for entry in stream.read(redis, turn.turn_id, after)]


def text_of(entries: list[Entry]) -> str:
    return "".join(chunk.content for _, chunk in hold(entries) if isinstance(chunk, Text))


def empty(valkey: RedisSeen, _: TurnRecord) -> None:
    valkey.flushall()


def lose_a_second(valkey: RedisSeen, turn: TurnRecord) -> None:
    """As a Redis whose machine went down; a follower has what it has lost."""
    *kept, _ = valkey.xrange(log := keys.log(turn.turn_id))
    valkey.delete(log)
    for entry_id, fields in kept:
        valkey.xadd(log, fields, entry_id)
    valkey.hset(keys.turn(turn.turn_id), "seq", len(kept))
    valkey.set(keys.known(), "the-process-before told")


@pytest.mark.parametrize("lose", [empty, lose_a_second])
@pytest.mark.parametrize("stopped", [False, True])
async def test_a_follower_holds_the_answer(
    turns: Turns,
    redis: Redis,
    valkey: RedisSeen,
    steps: TwoSteps,
    restart: Callable[[], Awaitable[None]],
    lose: Loss,
    stopped: bool,
) -> None:
    await restart()
    turn = await leave(turns, steps, stopped=stopped)
    seen = await follow(redis, turn)
    lose(valkey, turn)
    await restart()
    steps.free.set()
    await steps.worker().run(turn.turn_id)
    seen += await follow(redis, turn, after=seen[-1].seq)
    assert [entry.seq for entry in seen] == list(range(1, len(seen) + 1))
    assert text_of(seen) == text_of(await follow(redis, turn)) == "onetwo"
    ended = await turns.read(turn.turn_id)
    assert (ended.status, ended.attempt) == ("done", 1 if stopped else 2)


async def test_a_follower_holds_it_when_the_next_worker_is_lost_as_well(
    turns: Turns,
    redis: Redis,
    valkey: RedisSeen,
    steps: TwoSteps,
    restart: Callable[[], Awaitable[None]],
) -> None:
    await restart()
    turn = await leave(turns, steps)
    seen = await follow(redis, turn)
    for _ in range(2):
        valkey.flushall()
        await restart()
        # It dies while it says what is lost.
        claims = Claims(redis, LIFETIMES)
        claims.mark = steps.mark
        again = await claim(claims, turn)
        await complete_log(claims, steps.memory, again, claims.mark)
        await claims.requeue(again, (await turns.read(turn.turn_id)).seq + 1)
        seen += await follow(redis, turn, after=seen[-1].seq)
    steps.free.set()
    await steps.worker().run(turn.turn_id)
    seen += await follow(redis, turn, after=seen[-1].seq)
    assert [entry.seq for entry in seen] == list(range(1, len(seen) + 1))
    assert text_of(seen) == text_of(await follow(redis, turn)) == "onetwo"


async def test_of_one_that_is_only_undone_he_hears_the_end(
    turns: Turns,
    redis: Redis,
    valkey: RedisSeen,
    steps: TwoSteps,
    restart: Callable[[], Awaitable[None]],
) -> None:
    await restart()
    turn = await leave(turns, steps)
    seen = await follow(redis, turn)
    valkey.flushall()
    await restart()
    await steps.worker(ON_WORKER_LOST="rollback").run(turn.turn_id)
    after = await follow(redis, turn, after=seen[-1].seq)
    assert after[-1].type == "error"
    assert text_of([*seen, *after]) == ""


async def test_nothing_stands_in_for_what_is_not_lost(
    turns: Turns,
    redis: Redis,
    valkey: RedisSeen,
    steps: TwoSteps,
    restart: Callable[[], Awaitable[None]],
) -> None:
    await restart()
    turn = await leave(turns, steps, stopped=True)
    # Both were stopped in order: Redis is another process, and has all.
    valkey.set(keys.known(), "the-process-before told")
    await restart()
    steps.free.set()
    await steps.worker().run(turn.turn_id)
    assert steps.told(turn) == ["queued", "one", "rewind 2", "queued", "two", "done"]


LOG = [entry(1, queued(TURN)), entry(2, text(TURN, "hi"))]


@pytest.mark.parametrize(
    ("numbering", "redis"),
    [(None, "mark"), (Numbering(100, "mark"), "mark"), (Numbering(2, "other"), "mark")],
    ids=["never begun", "the same Redis", "let go at its end"],
)
def test_a_whole_log_is_left_as_it_is(numbering: Numbering | None, redis: str) -> None:
    assert replace_lost(TURN, LOG, numbering, redis) == []


def test_what_may_be_lost_is_void() -> None:
    behind = replace_lost(TURN, LOG, Numbering(4, "other"), "mark")
    assert [(entry.seq, entry.type) for entry in behind] == [
        (3, "queued"),
        (4, "queued"),
        (5, "rewind"),
    ]
    assert [seq for seq, _ in hold([*LOG, *behind])] == [1, 2]


def test_a_rewind_that_cannot_be_read_tells_of_no_loss() -> None:
    assert count_lost([*LOG, Entry(3, "rewind", b"{}")]) == 0
