"""The tutorial: what a person does with the service, and what they see."""

import asyncio
from pathlib import Path
from typing import Any

from shared.chunks import Done, Queued, ToolResult, ToolUse, type_of
from tests.fake_llama import FakeLlama, Reply
from tests.service import run_api, run_service, run_worker, text_of


async def test_a_turn_is_posted_followed_and_done(redis_url: str, tmp_path: Path) -> None:
    answer = "Hello, dear reader of tests."
    async with (
        FakeLlama([Reply(content=answer)]) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        seen = await service.ask("Say hello.", thread_id="tutorial")

        assert isinstance(seen[0], Queued)
        assert text_of(seen) == answer
        assert isinstance(seen[-1], Done)
        assert [chunk.completed for chunk in seen] == [False] * (len(seen) - 1) + [True]

        turn = await service.turn(seen[0].turn_id)
        assert turn["status"] == "done"
        assert turn["thread_id"] == "tutorial"
        assert turn["attempt"] == 1
        assert turn["usage"]["model_calls"] == 1


async def test_a_tool_call_is_shown_whole_with_its_result(redis_url: str, tmp_path: Path) -> None:
    script = [
        Reply(content="Let me look.", tool_calls=[("ls", {"path": "/"})]),
        Reply(content="It is empty."),
    ]
    async with (
        FakeLlama(script) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        seen = await service.ask("What is there?")

    call = next(chunk for chunk in seen if isinstance(chunk, ToolUse))
    result = next(chunk for chunk in seen if isinstance(chunk, ToolResult))
    assert (call.content, call.metadata.args) == ("ls", {"path": "/"})
    assert result.metadata.call_id == call.metadata.call_id
    assert result.metadata.status == "ok"
    assert text_of(seen) == "Let me look.It is empty."
    done = seen[-1]
    assert isinstance(done, Done)
    assert (done.metadata.model_calls, done.metadata.tool_calls) == (2, 1)


async def test_the_thread_remembers_across_a_restart_of_everything(
    redis_url: str, tmp_path: Path
) -> None:
    script = [Reply(content="Nice to meet you, Ada."), Reply(content="You are Ada.")]
    async with FakeLlama(script) as llama:
        async with run_service(redis_url, llama.base_url, tmp_path) as service:
            await service.ask("I am Ada.", thread_id="ada")
        async with run_service(redis_url, llama.base_url, tmp_path) as service:
            seen = await service.ask("Who am I?", thread_id="ada")

    assert text_of(seen) == "You are Ada."
    assert spoken(llama.calls[1].body) == [
        ("user", "I am Ada."),
        ("assistant", "Nice to meet you, Ada."),
        ("user", "Who am I?"),
    ]


async def test_turns_wait_for_one_another_and_start_in_order(
    redis_url: str, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    script = [Reply(content="first", gate=gate), Reply(content="second"), Reply(content="third")]
    async with (
        FakeLlama(script) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        turns = [await service.post(f"Question {n}", thread_id=f"t{n}") for n in range(3)]
        await service.wait_for_status(turns[0], "running")
        assert [(await service.turn(turn))["position"] for turn in turns] == [0, 1, 2]
        queue = (await service.client.get("/queue")).json()
        assert queue["running"]["turn_id"] == turns[0]
        assert [turn["turn_id"] for turn in queue["waiting"]] == turns[1:]

        gate.set()
        answers = [text_of(await service.follow(turn)) for turn in turns]

    assert answers == ["first", "second", "third"]
    assert llama.max_at_once == 1


async def test_a_turn_that_waits_can_be_cancelled(redis_url: str, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with (
        FakeLlama([Reply(content="long", gate=gate)]) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        running = await service.post("Think long.")
        await service.wait_for_status(running, "running")
        waiting = await service.post("Never mind.")
        following = asyncio.create_task(service.follow(waiting))

        answer = await service.client.post(f"/turns/{waiting}/cancel")
        assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
        assert [type_of(chunk) for chunk in await following] == ["queued", "cancelled"]

        gate.set()
        await service.follow(running)

    assert len(llama.calls) == 1, "the model server has never seen the cancelled turn"


async def test_turns_are_accepted_while_no_worker_lives(redis_url: str, tmp_path: Path) -> None:
    async with FakeLlama([Reply(content="Here I am.")]) as llama, run_api(redis_url) as service:
        turn = await service.post("Is anybody there?")
        assert (await service.client.get("/queue")).json()["worker"] == "lost"
        async with run_worker(redis_url, llama.base_url, tmp_path):
            assert text_of(await service.follow(turn)) == "Here I am."


async def test_followers_join_late_drop_and_resume(redis_url: str, tmp_path: Path) -> None:
    gate = asyncio.Event()
    script = [Reply(content="one two three four five six seven", gate=gate, decode_tps=200)]
    async with (
        FakeLlama(script) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        turn = await service.post("Count.")
        early = asyncio.create_task(service.follow(turn))
        await service.wait_for_status(turn, "running")
        gate.set()
        whole = await early

        assert await service.follow(turn) == whole
        for cursor in range(1, len(whole)):
            assert await service.follow(turn, after=cursor) == whole[cursor:]
        ended = await service.client.get(f"/turns/{turn}/events?after={len(whole)}")
        assert ended.status_code == 204


async def test_a_failure_ends_the_turn_with_one_error(redis_url: str, tmp_path: Path) -> None:
    script = [Reply(error=(500, {"message": "out of memory", "type": "server_error"}))]
    async with (
        FakeLlama(script) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        seen = await service.ask("Fail.")
        turn = await service.turn(seen[0].turn_id)

    assert [type_of(chunk) for chunk in seen] == ["queued", "error"]
    assert turn["status"] == "error"
    assert turn["error"]["code"] == "model_error"
    assert len(llama.calls) == 1, "a prompt is never sent again unasked"


async def test_words_that_no_encoding_can_hold_end_a_turn_all_the_same(
    redis_url: str, tmp_path: Path
) -> None:
    half = "half a pair: \ud800"
    script = [
        Reply(error=(500, {"message": half, "type": "server_error"})),
        Reply(content="one", stream_error=(1, {"message": half, "type": "server_error"})),
        Reply(content="one", finish=half),
    ]
    async with (
        FakeLlama(script) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        ends = [type_of((await service.ask("Go."))[-1]) for _ in script]

    assert ends == ["error", "error", "done"]


async def test_status_is_answered_in_the_middle_of_a_turn(redis_url: str, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with (
        FakeLlama([Reply(content="slow", gate=gate)]) as llama,
        run_service(redis_url, llama.base_url, tmp_path) as service,
    ):
        turn = await service.post("Take your time.")
        await llama.wait_for(lambda: bool(llama.calls))

        status = (await service.client.get("/status")).json()
        assert status["worker"]["alive"]
        assert status["worker"]["turn_id"] == turn
        assert status["slot"]["busy"]
        assert (status["redis"], status["llama"]) == ("ok", "ok")
        assert (await service.client.get("/health/ready")).status_code == 200

        gate.set()
        await service.follow(turn)


def spoken(body: dict[str, Any]) -> list[tuple[str, str]]:
    """A request's conversation without its system message."""
    messages = [(message["role"], message["content"]) for message in body["messages"]]
    return [message for message in messages if message[0] != "system"]
