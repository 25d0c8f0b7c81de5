"""Settings of the API that cannot be used."""

import pytest

from api.settings import ApiSettings
from shared.errors import SettingsError
from shared.settings import load


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("API_PORT", {"API_PORT": "65536"}),
        ("API_PORT", {"API_PORT": "-1"}),
        ("API_PORT", {"API_PORT": "http"}),
        ("MAX_QUEUE", {"MAX_QUEUE": "-1"}),
        ("API_HOST", {"API_HOST": "0.0.0.0"}),
        ("API_HOST", {"API_HOST": "::"}),
        ("API_HOST", {"API_HOST": "192.168.1.1"}),
        ("API_HOST", {"API_HOST": "box.example", "API_ALLOW_OPEN": "0"}),
        ("API_HOST", {"API_HOST": "0.0.0.0", "API_TOKEN": ""}),
        ("API_ALLOW_OPEN", {"API_ALLOW_OPEN": "perhaps"}),
        ("API_TOKEN", {"API_TOKEN": "two words"}),
        ("API_TOKEN", {"API_TOKEN": "sesame-ü"}),
        ("API_TOKEN", {"API_TOKEN": "\udcff"}),
        ("DEFAULT_AGENT", {"DEFAULT_AGENT": "nobody"}),
        ("CORS_ORIGINS", {"CORS_ORIGINS": "friend.example"}),
        ("CORS_ORIGINS", {"CORS_ORIGINS": "https://friend.example/"}),
    ],
)
def test_a_bad_value_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, name: str, environment: dict[str, str]
) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as caught:
        load(ApiSettings)
    assert str(caught.value).startswith(f"{name}: ")
    assert "\n" not in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"API_HOST": "localhost"},
        {"API_HOST": "127.1.2.3"},
        {"API_HOST": "::1"},
        {"API_HOST": "0.0.0.0", "API_TOKEN": "sesame"},
        {"API_HOST": "0.0.0.0", "API_ALLOW_OPEN": "1"},
        {"DEFAULT_AGENT": "mine", "AGENTS": "mine=their.package:build"},
        {"CORS_ORIGINS": "https://a.example, http://b.example:3000"},
        {"MAX_QUEUE": "0"},
    ],
)
def test_good_values(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    load(ApiSettings)


def test_the_token_is_not_shown() -> None:
    settings = ApiSettings(API_TOKEN="sesame")  # pyright: ignore[reportArgumentType]
    assert "sesame" not in repr(settings)
    assert settings.token == b"sesame"
