"""Why a process ends, in one line that begins so that others can tell it from the rest."""

import sys

HEAD = "turnkeeper: "


def say_reason(reason: object) -> None:
    """Writes the line to standard error."""
    sys.stderr.write(f"{HEAD}{reason}\n")
