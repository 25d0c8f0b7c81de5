"""Which recordings there are, by the way they are replayed."""

import re

import tests.fake_llama
from tests.llama_wire.recording import FOLDER

SESSION = (
    "a_stream_progress",
    "a_stream_plain_cached",
    "a_stream_no_usage",
    "a_nonstream",
    "j_get_endpoints",
)
LOADING = "d_loading_503"
IN_DECODE, IN_PREFILL = "e_cancel_decode", "e_cancel_prefill_18184"
IN_FIRST_BATCH = ("e_cancel_prefill_prog_b18184", "e_cancel_prefill_noprog_poll1600ms_b18184")
QUEUE = "f_two_requests_one_slot"
CACHES = ("g_cache_ram_on", "g_cache_ram_off", "g_cache_no_cache_prompt", "g_cache_id_slot0")
TOGETHER = {*SESSION, LOADING, IN_DECODE, IN_PREFILL, *IN_FIRST_BATCH, QUEUE, *CACHES}

_, _, _list = (tests.fake_llama.__doc__ or "").partition("Not modelled")
NOT_MODELLED = frozenset(re.findall(r"\b[a-j]_\w+", _list))
"""What the fake says of itself."""

RECORDED = frozenset(path.stem for path in FOLDER.glob("*.jsonl"))
ALONE = RECORDED - TOGETHER - NOT_MODELLED
"""One request and its answer each."""
