"""Redis is told nothing that only Python can read, and nothing of that kind is read from it."""

import pickle
import pickletools
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shared import keys
from shared.chunks import type_of
from tests.fake_llama import FakeLlama, Reply
from tests.redis_seen import RedisSeen, looking
from tests.service import run_api, run_worker

LAST = "that is all"


class Bomb:
    gone_off = False

    def __reduce__(self) -> tuple[Any, ...]:
        return setattr, (Bomb, "gone_off", True)


@contextmanager
def overhearing(url: str) -> Generator[list[bytes]]:
    """Every command that Redis is given, complete at the end."""
    heard: list[bytes] = []
    with looking(url) as redis, redis.monitor() as monitor:

        def listen() -> None:
            while LAST.encode() not in (command := monitor.connection.read_response()):
                heard.append(command)

        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield heard
        finally:
            with looking(url) as redis:
                redis.echo(LAST)
            listener.join()


def arguments(command: bytes) -> list[bytes]:
    """Of a line as MONITOR writes it: each in quotes, with escapes."""
    text = command.decode().split("] ", 1)[1]
    return [
        part.encode("latin-1").decode("unicode_escape").encode("latin-1")
        for part in text[1:-1].split('" "')
    ]


def is_pickle(value: bytes) -> bool:
    """Protocol 2 and later begin with their number; what follows is looked at, and not run."""
    if not value.startswith(b"\x80"):
        return False
    try:
        return bool(list(pickletools.genops(value)))
    except ValueError:
        return False


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_known_from_what_is_none(protocol: int) -> None:
    pickled = pickle.dumps({"f": "run_turn"}, protocol)
    line = b'1.1 [0 unix:x] "SET" "key" "' + b"".join(b"\\x%02x" % byte for byte in pickled) + b'"'
    assert [is_pickle(argument) for argument in arguments(line)] == [False, False, True]


async def test_none_is_written_and_one_that_is_planted_is_not_opened(
    redis_url: str, valkey: RedisSeen, tmp_path: Path
) -> None:
    replies = [Reply(content="Hello."), Reply(error=(500, {"message": "no"})), Reply(content="Hi.")]
    with overhearing(redis_url) as heard:
        async with FakeLlama(replies) as llama, run_api(redis_url) as service:
            first = await service.post("Say hello.")
            async with run_worker(redis_url, llama.base_url, tmp_path):
                ends = [(await service.follow(first))[-1], (await service.ask("Fail."))[-1]]
            planted = await service.post("Say hi.")
            valkey.set(keys.job(planted), pickle.dumps({"bomb": Bomb()}, protocol=4))
            async with run_worker(redis_url, llama.base_url, tmp_path):
                ends.append((await service.follow(planted))[-1])
    assert [type_of(end) for end in ends] == ["done", "error", "done"]
    assert not Bomb.gone_off
    pickles = [command for command in heard if any(map(is_pickle, arguments(command)))]
    assert len(pickles) == 1, "our own is heard, and no other"
