"""Agents: the built-in ones and those of other people's packages."""

import importlib
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from shared.agents import BUILT_IN
from shared.errors import SettingsError
from tests.fake_llama import FakeLlama, Reply
from worker.agents.registry import Deps, build_agents
from worker.graph import stream_parts
from worker.llm import open_model
from worker.settings import WorkerSettings

AGENTS = """
from langgraph.graph import StateGraph, MessagesState

def graph_of(deps, name):
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [("ai", name)]})
    graph.set_entry_point("answer")
    return graph.compile(checkpointer=deps.checkpointer)

def build(deps):
    return graph_of(deps, "sync")

async def build_async(deps):
    return graph_of(deps, "async")

number = 5
"""


@pytest.fixture(autouse=True)
def _other_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Their package, as importable as any."""
    (tmp_path / "their_agents.py").write_text(AGENTS)
    (tmp_path / "their_typo.py").write_text("def build(deps:\n")
    (tmp_path / "their_crash.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()


async def build(**settings: Any) -> list[str]:
    """Builds all agents and answers what each that is not built in says."""
    said: list[str] = []
    async with (
        FakeLlama() as llama,
        open_model(read := WorkerSettings(LLAMA_BASE_URL=llama.base_url, **settings)) as model,
    ):
        graphs = await build_agents(Deps(model, InMemorySaver(), read))
        assert set(graphs) == set(read.agent_names)
        for name in sorted(set(graphs) - set(BUILT_IN)):
            config = {"configurable": {"thread_id": name}}
            answer = await cast(Any, graphs[name]).ainvoke({"messages": [("user", "hi")]}, config)
            said.append(answer["messages"][-1].text)
    return said


async def test_the_built_in_agents_are_there() -> None:
    assert await build() == []


async def test_agents_of_other_people_are_built_at_once_or_in_time() -> None:
    agents = "a=their_agents:build,b=their_agents:build_async"
    assert await build(AGENTS=agents) == ["sync", "async"]


@pytest.mark.parametrize(
    "place",
    [
        *("their_agents:nothing", "no_such_module:build", "their_agents.deeper:build"),
        *("their_typo:build", "their_crash:build", "their_agents:number"),
    ],
)
async def test_an_agent_that_cannot_be_built_is_a_bad_setting(place: str) -> None:
    with pytest.raises(SettingsError, match=rf"^AGENTS: .*{place}") as caught:
        await build(AGENTS=f"mine={place}")
    assert "\n" not in str(caught.value)


async def test_the_chat_agent_says_what_its_prompt_file_tells_it(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Speak like a pirate: ☠", encoding="utf-8")
    async with FakeLlama([Reply("Arr")]) as llama:
        settings = WorkerSettings(LLAMA_BASE_URL=llama.base_url, SYSTEM_PROMPT_FILE=prompt)
        async with open_model(settings) as model:
            graphs = await build_agents(Deps(model, InMemorySaver(), settings))
            given = {"messages": [("user", "hi")]}
            config: RunnableConfig = {"configurable": {"thread_id": "t"}}
            assert [part async for part in stream_parts(graphs["chat"], given, config)]
    system = llama.calls[0].body["messages"][0]
    assert system["role"] == "system"
    assert "Speak like a pirate: ☠" in str(system["content"])


async def test_a_prompt_file_that_cannot_be_read_is_a_bad_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^SYSTEM_PROMPT_FILE: .*No such file"):
        await build(SYSTEM_PROMPT_FILE=tmp_path / "nowhere.md")
