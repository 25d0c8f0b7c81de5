"""Settings: read once, with a line that names what is wrong."""

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from shared.errors import SettingsError
from shared.record import Lifetimes
from shared.settings import load
from worker.settings import WorkerSettings

DEFAULTS: dict[str, Any] = {
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "AGENTS": "",
    "CHUNK_TTL_S": 86_400,
    "TURN_TTL_S": 604_800,
    "LOG_LEVEL": "INFO",
    "LOG_FORMAT": "console",
    "LLAMA_BASE_URL": "http://127.0.0.1:8080/v1",
    "LLAMA_EXTRA_BODY": {},
    "LLAMA_MAX_TOKENS": 8192,
    "TURN_TIMEOUT_S": 3600,
    "STEP_LIMIT": 100,
    "CHECKPOINT_DB": Path("data/checkpoints.sqlite"),
    "TOOL_PREVIEW_CHARS": 2000,
    "ON_WORKER_LOST": "resume",
    "SYSTEM_PROMPT_FILE": None,
}
"""As documented; what LLAMA_MODEL and LLAMA_API_KEY default to is no concern of a user."""

BAD = [
    *[("REDIS_URL", url) for url in ("localhost:6379", "http://127.0.0.1", "redis://host:port")],
    *[
        ("AGENTS", value)
        for value in ("mine", "mine=module", "a b=module:attr", "a=m:f,b", "a=.m:f")
    ],
    *[("CHUNK_TTL_S", value) for value in ("0", "-1", "1.5", "a day", "1000000000000000000")],
    *[("TURN_TTL_S", value) for value in ("0", "1000000000000000000")],
    ("LOG_LEVEL", "verbose"),
    ("LOG_FORMAT", "xml"),
    *[
        ("LLAMA_BASE_URL", value)
        for value in ("127.0.0.1:8080", "ftp://x", "http://host:port", "http://")
    ],
    *[("LLAMA_EXTRA_BODY", value) for value in ("[]", "{", "text", "1")],
    *[("LLAMA_MAX_TOKENS", value) for value in ("0", "many")],
    *[("TURN_TIMEOUT_S", value) for value in ("0", "-1", "nan", "soon")],
    *[("STEP_LIMIT", value) for value in ("0", "1.5")],
    *[("TOOL_PREVIEW_CHARS", value) for value in ("-1", "all")],
    ("ON_WORKER_LOST", "retry"),
    ("LLAMA_API_KEY", "ключ"),
]


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for name in WorkerSettings.model_fields:
        monkeypatch.delenv(name, raising=False)


def test_the_defaults() -> None:
    settings = load(WorkerSettings).model_dump()
    assert {name: settings[name] for name in DEFAULTS} == DEFAULTS
    assert set(settings) - set(DEFAULTS) == {"LLAMA_MODEL", "LLAMA_API_KEY"}


def test_every_setting_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "unix:///tmp/redis.sock")
    monkeypatch.setenv("AGENTS", "mine=my.agents:build, other=o:b,")
    monkeypatch.setenv("CHUNK_TTL_S", "1")
    monkeypatch.setenv("TURN_TTL_S", "2")
    monkeypatch.setenv("LLAMA_EXTRA_BODY", '{"temperature": 0}')
    settings = load(WorkerSettings)
    assert settings.REDIS_URL == "unix:///tmp/redis.sock"
    assert settings.agents == {"mine": "my.agents:build", "other": "o:b"}
    assert settings.agent_names == {"chat", "mine", "other"}
    assert settings.lifetimes == Lifetimes(chunks_s=1, turn_s=2)
    assert settings.LLAMA_EXTRA_BODY == {"temperature": 0}


@pytest.mark.parametrize("name", WorkerSettings.model_fields)
def test_an_empty_variable_counts_as_unset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = load(WorkerSettings)
    monkeypatch.setenv(name, "")
    assert load(WorkerSettings) == expected


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_named_in_one_line(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load(WorkerSettings)
    line = str(caught.value)
    assert line.startswith(f"{name}: ")
    assert "\n" not in line
    assert len(line) > len(f"{name}: ")


def test_a_secret_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_API_KEY", "hush-hush")
    settings = load(WorkerSettings)
    assert settings.LLAMA_API_KEY.get_secret_value() == "hush-hush"
    assert "hush-hush" not in f"{settings!r} {settings} {settings.model_dump()}"


@pytest.mark.parametrize("url", ["http://user:hush-hush@host", "redis://:hush/hush@host:1"])
def test_a_password_in_a_bad_url_is_not_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", url)
    with pytest.raises(SettingsError) as caught:
        load(WorkerSettings)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None  # a traceback would show the input


def test_settings_never_change() -> None:
    settings = load(WorkerSettings)
    with pytest.raises(ValidationError):
        settings.STEP_LIMIT = 5
    assert DEFAULTS["STEP_LIMIT"] == settings.STEP_LIMIT


def test_what_is_no_setting_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URI", "nonsense")
    assert DEFAULTS["REDIS_URL"] == load(WorkerSettings).REDIS_URL
    assert "REDIS_URI" in os.environ
