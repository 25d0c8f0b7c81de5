"""The oldest checkpoint saver that a thread can be trusted to."""

from importlib.metadata import version

from packaging.version import Version

from worker.errors import SaverTooOld

PACKAGE = "langgraph-checkpoint-sqlite"
OLDEST = "3.1.2"


def check_saver(installed: str | None = None) -> None:
    """Raises SaverTooOld for a version (that installed, if none is said) that loses checkpoints."""
    found = installed or version(PACKAGE)
    # pyproject.toml asks for the same, but an installation by hand may overrule it.
    if Version(found) < Version(OLDEST):
        raise SaverTooOld(
            f"{PACKAGE} {found} is installed, but before {OLDEST} it silently loses a parent "
            "checkpoint whose id sorts above its child's, and the thread forgets what was in it "
            "(langgraph #8550)."
        )
