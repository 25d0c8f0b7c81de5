"""What the slot worker takes for granted of arq: when one of these fails, look at both."""

import inspect

import pytest
from arq.worker import Worker

from worker.slot_worker import SlotWorker


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("_poll_iteration", ["self"]),
        ("_release_sem_dec_counter_on_complete", ["self"]),
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
    assert "self._release_sem_dec_counter_on_complete()" in inspect.getsource(Worker.start_jobs)
    assert "await self._poll_iteration()" in inspect.getsource(Worker.main)
