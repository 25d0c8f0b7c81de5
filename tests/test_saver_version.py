"""A saver that would make threads forget is not started with."""

from pathlib import Path
from typing import Any, cast

import pytest

from worker.errors import CannotStart
from worker.saver_version import SaverTooOld, check_saver


@pytest.mark.parametrize("installed", ["3.1.2", "3.1.2.post1", "3.1.10", "3.2", "4.0.0.post1"])
def test_a_saver_with_the_repair_is_taken(installed: str) -> None:
    check_saver(installed)


@pytest.mark.parametrize("installed", ["2.9.9", "3.0.10", "3.1", "3.1.1", "3.1.2rc1", "3.1.2.dev0"])
def test_an_older_saver_is_refused(installed: str) -> None:
    with pytest.raises(SaverTooOld):
        check_saver(installed)


def test_what_is_installed_is_asked_when_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_saver()
    installed = tmp_path / "langgraph_checkpoint_sqlite-3.1.1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: langgraph-checkpoint-sqlite\nVersion: 3.1.1\n")
    cast(Any, monkeypatch).syspath_prepend(tmp_path)
    with pytest.raises(SaverTooOld):
        check_saver()


def test_the_reason_is_one_sentence_that_says_what_to_install() -> None:
    with pytest.raises(CannotStart) as refused:
        check_saver("3.1.1")
    assert refused.value.code == "saver_too_old"
    assert refused.value.exit_code == 1
    assert str(refused.value) == (
        "langgraph-checkpoint-sqlite 3.1.1 is installed, but before 3.1.2 it silently loses a "
        "parent checkpoint whose id sorts above its child's, and the thread forgets what was in "
        "it (langgraph #8550)."
    )
