"""A turn as arq sees it."""

import pickle
from typing import Any

import msgspec
import pytest
from arq import constants
from arq.jobs import deserialize_job_raw

from shared import jobs, keys


def test_the_names_of_arq_are_those_we_know() -> None:
    assert keys.job("x") == f"{constants.job_key_prefix}x"
    assert keys.job_tries("x") == f"{constants.retry_key_prefix}x"


def test_a_job_is_json_with_the_id_of_the_turn_and_nothing_of_its_content() -> None:
    job = msgspec.json.decode(jobs.encode_job("turn-1"))
    assert job.pop("et") > 0
    assert job == {"t": None, "f": jobs.FUNCTION, "a": ["turn-1"], "k": {}}


def test_arq_reads_a_job_with_our_deserializer() -> None:
    function, args, kwargs, tries, _ = deserialize_job_raw(
        jobs.encode_job("turn-1"), deserializer=jobs.decode_json
    )
    assert (function, list(args), kwargs, tries) == (jobs.FUNCTION, ["turn-1"], {}, None)


@pytest.mark.parametrize("data", [pickle.dumps({"f": "run"}), b"", b"[]", b'"text"', b"{"])
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        jobs.decode_json(data)


def test_a_result_that_json_cannot_hold_is_told_by_its_repr() -> None:
    result: dict[str, Any] = {"r": ValueError("why")}
    assert jobs.decode_json(jobs.encode_json(result)) == {"r": "ValueError('why')"}
