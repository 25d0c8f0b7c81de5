"""Every turn that has ended, however it ended: the thread's book, kept as long as the thread.

- L1  A turn is entered once, in the transaction that ends it; one that was cancelled before it
      began has ended in Redis, and is entered afterwards.
"""

import sqlite3

import msgspec
from aiosqlite import Connection
from msgspec import Struct

from shared import characters
from shared.chunks import Terminal
from shared.record import Failure, Run, Status, TurnRecord, TurnRequest
from shared.usage import ThreadUsage
from worker.ending import Ending

SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (
    turn_id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    request TEXT NOT NULL,
    retry_of TEXT,
    outcome TEXT NOT NULL,
    failure TEXT,
    rolled_back_messages INTEGER,
    attempt INTEGER NOT NULL,
    run_id TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    chunk TEXT NOT NULL,
    finished_at INTEGER NOT NULL,
    runs TEXT NOT NULL,
    said TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS ledger_by_thread ON ledger (thread_id, created_at, turn_id);
"""

COLUMNS = (
    *("turn_id", "thread_id", "agent", "request", "retry_of"),
    *("outcome", "failure", "rolled_back_messages", "attempt", "run_id"),
    *("created_at", "started_at", "chunk", "finished_at", "runs"),
)
ENTER = (
    f"INSERT OR IGNORE INTO ledger ({', '.join(COLUMNS)}, said) "
    f"VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"
)
TURNS = f"SELECT {', '.join(COLUMNS)} FROM ledger WHERE thread_id = ? ORDER BY created_at, turn_id"
SAID = """
SELECT turn_id, created_at, finished_at, said, json_extract(request, '$.text') IS NULL
FROM ledger WHERE thread_id = ? AND outcome = 'done' ORDER BY created_at, turn_id
"""
# SQLite takes sums of what is null as null, and the bare column from the row with the maximum.
USAGE = """
SELECT sum(usage ->> 'prompt_tokens_total'), sum(usage ->> 'cache_read_total'),
       sum(usage ->> 'completion_tokens_total'), total(usage ->> 'model_calls'), total(elapsed_s)
FROM (SELECT chunk -> '$.metadata.usage' AS usage, chunk ->> '$.metadata.elapsed_s' AS elapsed_s
      FROM ledger WHERE thread_id = ? AND started_at IS NOT NULL)
"""
CONTEXT_END = """
SELECT chunk ->> '$.metadata.usage.context_end' AS context_end FROM ledger
WHERE thread_id = ? AND context_end IS NOT NULL ORDER BY created_at DESC, turn_id DESC LIMIT 1
"""


class SaidIn(Struct, frozen=True):
    """What a turn that was done has said, by `Ending.said`; times as there.

    `was_text`: its input was one message, whose id is the turn's.
    """

    turn_id: str
    created_at: int
    finished_at: int
    said: dict[str, int]
    was_text: bool


_chunks: msgspec.json.Decoder[Terminal] = msgspec.json.Decoder(Terminal)
_failures = msgspec.json.Decoder(Failure)
_requests = msgspec.json.Decoder(TurnRequest)
_runs = msgspec.json.Decoder(list[Run])
_said = msgspec.json.Decoder(dict[str, int])


async def enter(connection: Connection, ending: Ending) -> bool:
    """Writes the turn down, with its last chunk; False if it was before. Times are milliseconds
    since the epoch, by Redis' clock.
    """
    turn = ending.turn
    cursor = await connection.execute(
        ENTER,
        (
            *(turn.turn_id, turn.thread_id, turn.agent, _json(turn.request), turn.retry_of),
            *(ending.outcome, _json(ending.failure) if ending.failure else None),
            *(ending.rolled_back_messages, turn.attempt, turn.run_id),
            *(turn.created_at, turn.started_at, _json(ending.chunk)),
            *(ending.finished_at, _json(turn.runs), _json(ending.said)),
        ),
    )
    return cursor.rowcount > 0


async def find_end(connection: Connection, turn: TurnRecord) -> Ending | None:
    """How the turn ended, if it has."""
    cursor = await connection.execute(
        "SELECT chunk, failure FROM ledger WHERE turn_id = ?", (turn.turn_id,)
    )
    if (row := await cursor.fetchone()) is None:
        return None
    chunk, failure = row
    return Ending(
        turn=turn,
        chunk=_chunks.decode(chunk),
        failure=_failures.decode(failure) if failure else None,
    )


def read_turns(connection: sqlite3.Connection, thread_id: str) -> list[TurnRecord]:
    """The thread's turns, the oldest first, as far as a turn's record is kept here."""
    return [_read_turn(row) for row in connection.execute(TURNS, (thread_id,))]


def read_usage(connection: sqlite3.Connection, thread_id: str) -> ThreadUsage:
    """What the thread's turns have used, together."""
    prompt, cached, completion, calls, elapsed_s = connection.execute(
        USAGE, (thread_id,)
    ).fetchone()
    last = connection.execute(CONTEXT_END, (thread_id,)).fetchone()
    return ThreadUsage(
        prompt_tokens_total=prompt,
        cache_read_total=cached,
        completion_tokens_total=completion,
        model_calls_total=int(calls),
        elapsed_s_total=round(elapsed_s, 3),
        context_end=last[0] if last else None,
    )


def read_said(connection: sqlite3.Connection, thread_id: str) -> list[SaidIn]:
    """What the thread's turns that were done have said, the oldest first."""
    return [
        SaidIn(turn_id, created_at, finished_at, _said.decode(said), not was_object)
        for turn_id, created_at, finished_at, said, was_object in connection.execute(
            SAID, (thread_id,)
        )
    ]


def _read_turn(row: sqlite3.Row) -> TurnRecord:
    chunk = _chunks.decode(row["chunk"])
    return TurnRecord(
        turn_id=row["turn_id"],
        thread_id=row["thread_id"],
        agent=row["agent"],
        request=_requests.decode(row["request"]),
        status=msgspec.convert(row["outcome"], Status),
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        attempt=row["attempt"],
        claim=0,
        seq=0,
        run_id=row["run_id"],
        trace_url=chunk.metadata.trace_url,
        error=_failures.decode(row["failure"]) if row["failure"] else None,
        usage=chunk.metadata.usage,
        idempotency_key="",
        runs=_runs.decode(row["runs"]),
        retry_of=row["retry_of"],
        rolled_back_messages=row["rolled_back_messages"],
    )


def _json(value: object) -> str:
    return characters.encode(value).decode()
