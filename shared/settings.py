"""Settings that both processes read from the environment, once, and never change."""

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableSetting

from shared.agents import BUILT_IN
from shared.errors import SettingsError
from shared.record import Lifetimes
from shared.redis import connection_pool

AGENT_ENTRY = re.compile(r"(?P<name>[A-Za-z0-9_-]+)=(?P<module>\w+(\.\w+)*):(?P<attr>\w+)")
LONGEST_S = 10 * 365 * 24 * 3600


def parse_agents(value: str) -> dict[str, str]:
    """`name=module:attr,…` as names and what to import; raises ValueError."""
    agents: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in value.split(","))):
        match = AGENT_ENTRY.fullmatch(entry)
        if not match:
            raise ValueError(f"{entry!r} is not of the form name=module:attr")
        agents[match["name"]] = f"{match['module']}:{match['attr']}"
    return agents


def _check_redis_url(value: str) -> str:
    if not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("must begin with redis://, rediss:// or unix://")
    try:
        connection_pool(value)
    except ValueError:  # whose words may hold the password
        raise ValueError("is not a URL that can be used") from None
    return value


def _check_agents(value: str) -> str:
    parse_agents(value)
    return value


class SharedSettings(BaseSettings):
    """The environment variables of the same names; an empty one counts as unset."""

    model_config = SettingsConfigDict(env_ignore_empty=True, frozen=True, extra="ignore")

    REDIS_URL: Annotated[str, AfterValidator(_check_redis_url)] = "redis://127.0.0.1:6379/0"
    AGENTS: Annotated[str, NoDecode, AfterValidator(_check_agents)] = ""
    CHUNK_TTL_S: int = Field(default=86_400, gt=0, le=LONGEST_S)
    TURN_TTL_S: int = Field(default=604_800, gt=0, le=LONGEST_S)
    LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    LOG_FORMAT: Literal["console", "json"] = "console"

    @property
    def agents(self) -> dict[str, str]:
        """The agents that AGENTS adds, each as `module:attr`."""
        return parse_agents(self.AGENTS)

    @property
    def agent_names(self) -> frozenset[str]:
        """Every agent that a turn may name."""
        return frozenset((*BUILT_IN, *self.agents))

    @property
    def lifetimes(self) -> Lifetimes:
        """How long ended turns are kept in Redis."""
        return Lifetimes(self.CHUNK_TTL_S, self.TURN_TTL_S)


S = TypeVar("S", bound=SharedSettings)


def load(settings: type[S], **given: Any) -> S:
    """Reads the environment; raises SettingsError with a line that names the bad variable.

    What is `given` counts before the environment.
    """
    try:
        return settings(**given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "settings"
        raise SettingsError(f"{name}: {first['msg'].removeprefix('Value error, ')}") from None
    except UnreadableSetting as error:
        name = re.search(r'field "(\w+)"', str(error))
        raise SettingsError(f"{name[1] if name else 'settings'}: must be JSON") from None
