"""Which recordings there are, by the way they are replayed."""

from tests.llama_wire.recording import FOLDER

NAMES = """
a_nonstream a_stream_no_usage a_stream_plain_cached a_stream_progress
b_auto_parallel b_default_no_parallel_flag b_named_object b_required_nonstream
b_required_parallel b_required_single b_truncated_in_args
c_nonstream_answer c_nonstream_exhausted c_reasoning_budget0 c_reasoning_budget8
c_reasoning_budget_msg c_reasoning_exhausted c_reasoning_format_none c_reasoning_in_content
c_reasoning_then_answer c_reasoning_truncated_answer c_thinking_off
d_bad_role d_bad_temperature_type d_bad_tool_choice d_bad_tool_schema d_bad_tool_schema2
d_bad_tool_schema_pattern d_content_image_no_mm d_content_null_assistant
d_ctx_exceeded_nonstream d_ctx_exceeded_stream d_ctx_exceeded_stream_noprog
d_ctx_full_in_decode d_empty_messages d_invalid_json d_killed_mid_stream
d_last_assistant_prefill d_loading_503 d_n2 d_no_messages d_sigterm_mid_stream d_tool_no_name
d_unknown_model
e_cancel_decode e_cancel_prefill_18184 e_cancel_prefill_nonstream_b18184
e_cancel_prefill_nopoll_noprog_18181 e_cancel_prefill_nopoll_noprog_18184
e_cancel_prefill_nopoll_prog_18184 e_cancel_prefill_noprog_b18184
e_cancel_prefill_noprog_ping_b18184 e_cancel_prefill_noprog_poll1600ms_b18184
e_cancel_prefill_prog_b18184
f_two_requests_one_slot
g_cache_id_slot0 g_cache_id_slot5 g_cache_no_cache_prompt g_cache_ram_off g_cache_ram_on
g_n_cache_reuse g_slot_after_restart g_slot_restart_ok g_slot_save
h_utf8_cut_3 h_utf8_cut_4 h_utf8_cut_5 h_utf8_cut_6 h_utf8_hot h_utf8_stream
i_ping_noprogress_interval2 i_ping_request_field1
j_get_endpoints j_post_endpoints
lc_base_progress lc_base_reasoning lc_sub_progress lc_sub_reasoning
"""
RECORDED = frozenset(NAMES.split())
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

SHIPPED = frozenset(path.stem for path in FOLDER.glob("*.jsonl"))
ALONE = SHIPPED - {*SESSION, LOADING, IN_DECODE, IN_PREFILL, *IN_FIRST_BATCH, QUEUE, *CACHES}
"""One request and its answer each."""
