"""The worker's settings."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, HttpUrl, SecretStr, TypeAdapter

from shared.settings import SharedSettings

_urls = TypeAdapter(HttpUrl)


def _check_http_url(value: str) -> str:
    _urls.validate_python(value)
    return value


def _check_header(value: SecretStr) -> SecretStr:
    secret = value.get_secret_value()
    if not (secret.isascii() and secret.isprintable()):
        raise ValueError("must be printable ASCII, as it is sent in a header")
    return value


class WorkerSettings(SharedSettings):
    """The environment variables of the same names. `*_S` are seconds."""

    LLAMA_BASE_URL: Annotated[str, AfterValidator(_check_http_url)] = "http://127.0.0.1:8080/v1"
    LLAMA_MODEL: str = "default"
    LLAMA_API_KEY: Annotated[SecretStr, AfterValidator(_check_header)] = SecretStr("none")
    LLAMA_EXTRA_BODY: dict[str, Any] = Field(default={})
    LLAMA_MAX_TOKENS: int = Field(default=8192, gt=0)
    TURN_TIMEOUT_S: float = Field(default=3600, gt=0)
    STEP_LIMIT: int = Field(default=100, gt=0)
    CHECKPOINT_DB: Path = Path("data/checkpoints.sqlite")
    ON_WORKER_LOST: Literal["resume", "rollback"] = "resume"
    TOOL_PREVIEW_CHARS: int = Field(default=2000, ge=0)
    SYSTEM_PROMPT_FILE: Path | None = None
