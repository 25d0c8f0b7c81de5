"""What the slot worker takes for granted of arq: when one of these fails, look at both."""

import inspect
import re

import pytest
from arq.worker import Worker

from worker.slot_worker import SlotWorker


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("_poll_iteration", ["self"]),
        ("run_job", ["self", "job_id", "score"]),
        ("heart_beat", ["self"]),
        ("handle_sig_wait_for_completion", ["self", "signum"]),
        ("async_run", ["self"]),
        ("close", ["self"]),
    ],
)
def test_what_is_overridden_or_called_is_still_arq_s(name: str, parameters: list[str]) -> None:
    theirs, ours = getattr(Worker, name), getattr(SlotWorker, name)
    assert list(inspect.signature(theirs).parameters) == parameters
    assert list(inspect.signature(ours).parameters) == parameters
    assert inspect.iscoroutinefunction(theirs) == inspect.iscoroutinefunction(ours)


def test_arq_finishes_a_job_by_a_method_that_we_may_repeat() -> None:
    assert list(inspect.signature(Worker.finish_job).parameters) == [
        *("self", "job_id", "finish", "result_data", "result_timeout_s", "keep_result_forever"),
        *("incr_score", "keep_in_progress"),
    ]
    assert "await asyncio.shield(\n            self.finish_job(" in inspect.getsource(
        Worker.run_job
    )


def test_arq_looks_for_jobs_by_the_method_that_we_replace_and_by_no_other() -> None:
    assert "await self._poll_iteration()" in inspect.getsource(Worker.main)
    assert inspect.getsource(Worker).count("self.start_jobs(") == 1
    replaced = inspect.getsource(Worker._poll_iteration)  # pyright: ignore[reportPrivateUsage]
    assert set(re.findall(r"self\.(\w+)", replaced)) == {
        *("burst", "max_burst_jobs", "_jobs_started", "allow_abort_jobs", "_cancel_aborted_jobs"),
        *("pool", "queue_name", "queue_read_limit", "_queue_read_offset", "start_jobs"),
        *("allow_pick_jobs", "job_counter", "max_jobs", "tasks", "heart_beat"),
    }
