"""The database's file, judged before anything is imported that takes seconds."""

from pathlib import Path

from worker.errors import DatabaseUnusable


def prepare_file(path: Path) -> None:
    """Makes the folder and the file; raises DatabaseUnusable with what the system says."""
    if path.is_fifo():  # which nobody may ever read
        raise DatabaseUnusable(f"CHECKPOINT_DB cannot be opened: {path} is not a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise DatabaseUnusable(f"CHECKPOINT_DB cannot be opened: {error}") from error
