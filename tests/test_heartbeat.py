"""The worker's sign of life."""

from shared import heartbeat, keys
from shared.heartbeat import Heartbeat, end_heartbeat, read_heartbeat, write_heartbeat
from shared.redis import Redis
from tests.redis_seen import RedisSeen

BEAT = Heartbeat(database="db", worker="process 1 on host", since=12.5, versions={"arq": "0.28"})


async def test_a_worker_that_beats_is_alive(redis: Redis) -> None:
    assert await read_heartbeat(redis) is None
    await write_heartbeat(redis, BEAT)
    assert await read_heartbeat(redis) == BEAT


async def test_a_beat_is_gone_unless_it_is_renewed(redis: Redis, valkey: RedisSeen) -> None:
    await write_heartbeat(redis, BEAT)
    assert 0 < valkey.ttl(keys.worker()) <= heartbeat.EXPIRE_S
    valkey.expire(keys.worker(), 1)
    await write_heartbeat(redis, BEAT)
    assert valkey.ttl(keys.worker()) > 1


def test_a_beat_may_be_late_and_two_lost() -> None:
    assert heartbeat.RENEW_S * 3 < heartbeat.EXPIRE_S


async def test_a_worker_that_says_goodbye_is_gone_at_once(redis: Redis) -> None:
    await write_heartbeat(redis, BEAT)
    await end_heartbeat(redis)
    assert await read_heartbeat(redis) is None
    await end_heartbeat(redis)


async def test_each_lane_has_its_own_worker(redis: Redis) -> None:
    await write_heartbeat(redis, BEAT, lane="second")
    assert await read_heartbeat(redis) is None
    assert await read_heartbeat(redis, lane="second") == BEAT
