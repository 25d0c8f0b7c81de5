"""One of the processes, as it is to be started."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Part:
    """`environment` is what the process gets beside the variables of its parent."""

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
