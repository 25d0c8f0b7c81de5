"""One of the processes, as it is to be started."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Part:
    """`environment` is what it gets beside its parent's variables, `fds` what it keeps open.

    Lines that contain `hushed` are not told.
    """

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    fds: tuple[int, ...] = ()
    hushed: str = ""
