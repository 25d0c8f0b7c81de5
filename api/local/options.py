"""What `turnkeeper up` was asked for."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """`data` is absolute. A URL names a server of one's own; without it one is started here.

    Either `model` or `llama_base_url` is there.
    """

    data: Path
    database: Path
    host: str
    port: int
    guarded: bool
    model: Path | None
    redis_url: str | None
    llama_base_url: str | None

    @property
    def summary(self) -> str:
        """What is to be started, in words."""
        valkey = [] if self.redis_url else ["Valkey"]
        llama = [f"llama.cpp with {self.model}"] if self.model else []
        return ", ".join([*valkey, *llama, "worker, API"])

    @property
    def valkey_folder(self) -> Path:
        """Where the embedded Valkey keeps its data."""
        return self.data / "valkey"
