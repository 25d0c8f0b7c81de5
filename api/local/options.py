"""What `turnkeeper up` was asked for."""

from dataclasses import dataclass
from pathlib import Path

from api.hosts import WILDCARDS


@dataclass(frozen=True, slots=True)
class Options:
    """`data` is absolute. A URL names a server of one's own; without it one is started here.

    Either `model` or `llama_base_url` is there.
    """

    data: Path
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

    @property
    def url(self) -> str:
        """Where this machine reaches the API."""
        loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}
        host = loopback[self.host] if self.host in WILDCARDS else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
