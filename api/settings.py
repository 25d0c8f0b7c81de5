"""Settings of the API process."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

from shared.agents import BUILT_IN
from shared.characters import is_visible
from shared.hosts import is_loopback
from shared.settings import SharedSettings, parse_agents

ORIGIN = re.compile(r"\*|https?://[^/\s*,]+")


def parse_origins(value: str) -> list[str]:
    """`https://a.example,http://b:3000` or `*` as a list; raises ValueError."""
    origins = [part.strip().lower() for part in value.split(",") if part.strip()]
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} is not of the form https://host:port")
    return origins


def _check_origins(value: str) -> str:
    parse_origins(value)
    return value


def _check_token(value: SecretStr | None) -> SecretStr | None:
    if value and not is_visible(value.get_secret_value()):
        raise ValueError("must be made of visible ASCII characters")
    return value


class ApiSettings(SharedSettings):
    """What the API reads from the environment, beside what it shares with the worker.

    API_HOST stands behind the two that decide whether it may be other than loopback.
    """

    DEFAULT_AGENT: str = "chat"
    API_TOKEN: Annotated[SecretStr | None, AfterValidator(_check_token)] = None
    API_ALLOW_OPEN: bool = False
    API_HOST: str = "127.0.0.1"
    API_PORT: int = Field(default=8010, ge=0, le=65_535)
    CORS_ORIGINS: Annotated[str, AfterValidator(_check_origins)] = ""
    MAX_QUEUE: int = Field(default=32, ge=0)

    @field_validator("API_HOST")
    @classmethod
    def _check_host(cls, value: str, info: ValidationInfo) -> str:
        guarded = info.data.get("API_TOKEN") or info.data.get("API_ALLOW_OPEN")
        if not guarded and not is_loopback(value.lower()):
            raise ValueError(f"{value} is open to others: set API_TOKEN, or API_ALLOW_OPEN=1")
        return value.lower()

    @field_validator("DEFAULT_AGENT")
    @classmethod
    def _check_default_agent(cls, value: str, info: ValidationInfo) -> str:
        if value not in {*BUILT_IN, *parse_agents(info.data.get("AGENTS", ""))}:
            raise ValueError(f"no agent is named {value!r}")
        return value

    @property
    def token(self) -> bytes | None:
        """The bearer token that a request must show, None when everybody may ask."""
        return self.API_TOKEN.get_secret_value().encode() if self.API_TOKEN else None

    @property
    def cors_origins(self) -> list[str]:
        """Origins of other sites whose pages may ask."""
        return parse_origins(self.CORS_ORIGINS)
