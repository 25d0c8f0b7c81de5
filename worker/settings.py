"""The worker's settings."""

from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr

from shared.settings import SharedSettings


class WorkerSettings(SharedSettings):
    """The environment variables of the same names. `*_S` are seconds."""

    LLAMA_BASE_URL: str = Field(default="http://127.0.0.1:8080/v1", pattern=r"^https?://")
    LLAMA_MODEL: str = "default"
    LLAMA_API_KEY: SecretStr = SecretStr("none")
    LLAMA_EXTRA_BODY: dict[str, Any] = Field(default={})
    LLAMA_MAX_TOKENS: int = Field(default=8192, gt=0)
    TURN_TIMEOUT_S: float = Field(default=3600, gt=0)
    STEP_LIMIT: int = Field(default=100, gt=0)
    CHECKPOINT_DB: Path = Path("data/checkpoints.sqlite")
    TOOL_PREVIEW_CHARS: int = Field(default=2000, ge=0)
    SYSTEM_PROMPT_FILE: Path | None = None
