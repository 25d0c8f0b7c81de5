"""A scripted llama-server over real HTTP, faithful to build b11549 on the wire.

    async with FakeLlama(script=[Reply(content="hi")]) as llama:
        client = ChatOpenAI(base_url=llama.base_url, ...)
        await llama.wait_for(lambda: llama.calls and llama.calls[0].state == "done")

Kept: one slot, first come first served; no response head before the slot begins, and the head
before the prefill; progress, role, token, tool-call, finish and usage chunks; pings; the error
bodies; the prefix cache; a client that leaves is noticed after the running batch or token; /health,
/props, /slots, /metrics, /v1/models. All this is compared with recordings of that build by
`tests/test_fake_wire*.py`.

Stricter than llama-server: a tool call in the history without its tool message, or the reverse, is
answered 400, so that a dangling call fails a test.

Not recorded: the error event inside a stream, which follows llama-server's source; and, guessed
from what was recorded, the begun answer of a last assistant message when it is streamed, timings of
every token of reasoning and of tool calls, the slot's parameters while it works, and a reset.

Not modelled, with the recordings of it, which are not replayed:

- the model, so what a request has it say: sampling fields, grammars, `tool_choice`,
  `reasoning_budget_tokens`, `reasoning_format`, `n_cache_reuse` are taken and have no effect. The
  script decides: g_n_cache_reuse
- grammars made of the tools' schemas, so that a faulty schema is not refused: d_bad_tool_schema
  d_bad_tool_schema2
- fields of a wrong type or out of range, other than a text as `temperature` and `n` above 1
- the model's tokens and template: prompts are counted in the fake's own tokens unless the script
  tells their number, and there is no /tokenize, /apply-template, `input_tokens` or `count_tokens`,
  nor any other POST but the chat: j_post_endpoints
- the words of the JSON parser in an error
- when llama-server notices that a client left: about a second and up to two batches later, in the
  queue later still, e_cancel_prefill_nopoll_noprog_18181 e_cancel_prefill_nopoll_noprog_18184
  e_cancel_prefill_nopoll_prog_18184; not at all while /slots is polled and nothing is written,
  e_cancel_prefill_noprog_b18184 e_cancel_prefill_noprog_ping_b18184
  e_cancel_prefill_nonstream_b18184
- which prompts the cache in RAM drops: the fake keeps the last eight, g_cache_id_slot5
- slots saved to files, restored and erased: g_slot_save g_slot_restart_ok g_slot_after_restart
- more than one slot; `id_slot` is ignored
- the end of idle keep-alive connections; pipelined, chunked or `Expect: 100-continue` requests
"""

from tests.fake_llama.script import Call, Reply
from tests.fake_llama.server import FakeLlama

__all__ = ["Call", "FakeLlama", "Reply"]
