"""The agent is the same inside the service and outside of it."""

import json
import re
from pathlib import Path
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from tests.fake_llama import FakeLlama, Reply
from tests.service import run_service
from worker.agents.registry import Deps, build_agents
from worker.graph import stream_parts
from worker.llm import open_model
from worker.settings import WorkerSettings

QUESTIONS = ("What is there?", "Are you sure?")


def script() -> list[Reply]:
    """Two turns, the first with a tool call."""
    return [
        Reply(content="Let me look.", tool_calls=[("ls", {"path": "/"})]),
        Reply(content="Nothing is there."),
        Reply(content="Quite sure."),
    ]


def bodies(llama: FakeLlama) -> list[str]:
    """The requests as JSON; the server's random ids of tool calls become their numbers."""
    text = [json.dumps(call.body) for call in llama.calls]
    ids = dict.fromkeys(re.findall(r'"tool_call_id": "(\w+)"', " ".join(text)))
    for number, call_id in enumerate(ids):
        text = [body.replace(call_id, f"call {number}") for body in text]
    return text


async def test_an_agent_built_outside_sends_the_same_requests(
    redis_url: str, tmp_path: Path
) -> None:
    async with (
        FakeLlama(script()) as inside,
        run_service(redis_url, inside.base_url, tmp_path) as service,
    ):
        for question in QUESTIONS:
            await service.ask(question, thread_id="same")

    async with FakeLlama(script()) as outside:
        settings = WorkerSettings(LLAMA_BASE_URL=outside.base_url)
        async with open_model(settings) as model:
            agents = await build_agents(Deps(model, InMemorySaver(), settings))
            thread: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}
            for question in QUESTIONS:
                given = {"messages": [{"role": "user", "content": question}]}
                async for _ in stream_parts(agents["chat"], given, thread):
                    pass

    assert bodies(outside) == bodies(inside)


async def test_a_system_prompt_comes_from_its_file(redis_url: str, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("You speak like a lighthouse keeper.")
    async with (
        FakeLlama() as llama,
        run_service(redis_url, llama.base_url, tmp_path, SYSTEM_PROMPT_FILE=prompt) as service,
    ):
        await service.ask("Who are you?")

    system = llama.calls[0].body["messages"][0]
    assert system["role"] == "system"
    assert "lighthouse keeper" in str(system["content"])
