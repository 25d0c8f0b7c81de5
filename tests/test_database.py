"""The database's file."""

from pathlib import Path

import pytest

from worker.database import prepare_file
from worker.errors import DatabaseUnusable


def test_the_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "checkpoints.sqlite"
    prepare_file(path)
    assert path.exists()


def test_a_file_in_place_of_the_folder_is_told_in_the_system_s_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseUnusable, match=r"^CHECKPOINT_DB .*File exists") as caught:
        prepare_file(tmp_path / "file" / "checkpoints.sqlite")
    assert caught.value.exit_code == 3
    with pytest.raises(DatabaseUnusable, match=r"^CHECKPOINT_DB .*Not a directory"):
        prepare_file(tmp_path / "file" / "deeper" / "checkpoints.sqlite")


def test_a_folder_in_place_of_the_file_is_told_in_the_system_s_words(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable, match=r"^CHECKPOINT_DB .*Is a directory"):
        prepare_file(tmp_path)
