"""A cancel takes effect although the worker's subscription is dead and nobody has noticed."""

import asyncio
from pathlib import Path

import pytest

from shared.chunks import type_of
from tests.fake_llama import FakeLlama, Reply
from tests.service import run_service
from worker import lookout


async def hear_nothing(*_: object) -> None:
    await asyncio.Event().wait()


async def test_a_cancel_is_looked_for(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "hear_control", hear_nothing)
    async with (
        FakeLlama([Reply(content="never", gate=asyncio.Event())]) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        turn = await service.post("Think long.")
        await llama.wait_for(lambda: bool(llama.calls))
        await service.client.post(f"/turns/{turn}/cancel")
        seen = await service.follow(turn)
    assert type_of(seen[-1]) == "cancelled"
