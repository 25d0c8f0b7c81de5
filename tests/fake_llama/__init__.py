"""A scripted llama-server over real HTTP, faithful to build b11549 on the wire.

    async with FakeLlama(script=[Reply(content="hi")]) as llama:
        client = ChatOpenAI(base_url=llama.base_url, ...)
        await llama.wait_for(lambda: llama.calls and llama.calls[0].state == "done")

Kept: one slot, first come first served; no response head before the slot begins, and the head
before the prefill; progress, role, token, tool-call, finish and usage chunks; pings; the error
bodies; the prefix cache; a client that leaves is noticed after the running batch or before the
next token.

Stricter than llama-server: a tool call in the history without its tool message, or the reverse, is
answered 400, so that a dangling call fails a test.

Not modelled: real token counts; grammars and what `tool_choice` forces; sampling fields; more than
one slot; n_cache_reuse; saving and restoring slots; the delay, and the blindness while /slots is
polled, with which llama-server notices a client that left; the end of idle keep-alive connections;
pipelined, chunked or `Expect: 100-continue` requests; the metrics and properties nobody reads here.
The error event inside a stream follows llama-server's source: it was never recorded.
"""

from tests.fake_llama.script import Call, Reply
from tests.fake_llama.server import FakeLlama

__all__ = ["Call", "FakeLlama", "Reply"]
