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
from worker.lost import Log, count_missing, stand_in
from worker.numbering import Numbering
from worker.recovery import Recovery
from worker.rewind import count_lost, hold
from worker.telling import read_log

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


@pytest.mark.parametrize("emptied_again", [False, True])
async def test_a_follower_holds_it_when_the_next_worker_dies_while_it_says_what_is_lost(
    turns: Turns,
    redis: Redis,
    valkey: RedisSeen,
    steps: TwoSteps,
    restart: Callable[[], Awaitable[None]],
    emptied_again: bool,
) -> None:
    await restart()
    turn = await leave(turns, steps, stopped=True)
    seen = await follow(redis, turn)
    valkey.flushall()
    await restart()
    again = await claim(claims := Claims(redis, LIFETIMES), turn)
    log = await read_log(claims, steps.memory, again, steps.mark)
    assert log.lost >= len(seen) - 1
    await claims.publish(again, entry(2, stand_in(again, log)[0]))
    if emptied_again:
        valkey.flushall()
    await restart()
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


ENTRIES = [entry(1, queued(TURN)), entry(2, text(TURN, "hi"))]


@pytest.mark.parametrize(
    ("numbering", "mark"),
    [(None, "mark"), (Numbering(100, "mark"), "mark"), (Numbering(2, "other"), "mark")],
    ids=["never begun", "the same Redis", "let go at its end"],
)
def test_a_whole_log_lacks_nothing(numbering: Numbering | None, mark: str) -> None:
    assert count_missing(TURN, ENTRIES, numbering, mark) == 0


def test_what_may_be_lost_is_void() -> None:
    lost = count_missing(TURN, ENTRIES, Numbering(4, "other"), "mark")
    assert lost == 2
    behind = stand_in(TURN, Log(ENTRIES, "mark", lost))
    log = [*ENTRIES, *(entry(seq, chunk) for seq, chunk in enumerate(behind, 3))]
    assert [seq for seq, _ in hold(log)] == [1, 2]
    assert count_lost(log) == 1
    # A follower that has read more than there is.
    more = [entry(3, text(TURN, "gone")), entry(4, queued(TURN)), *log[4:]]
    assert [seq for seq, _ in hold([*ENTRIES, *more])] == [1, 2]


def test_what_stood_in_before_is_not_held() -> None:
    before = [*ENTRIES, *(entry(3, chunk) for chunk in stand_in(TURN, Log(ENTRIES, "", 1))[:1])]
    chunks = stand_in(TURN, Log(before, "mark", 1))
    assert [chunk.metadata.to_seq for chunk in chunks] == [2, 2]


def test_a_rewind_that_cannot_be_read_tells_of_no_loss() -> None:
    assert count_lost([*ENTRIES, Entry(3, "rewind", b"{}")]) == 0
