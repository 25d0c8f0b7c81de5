"""What a llama-server said, and the means to hear whether the fake says the same.

The recordings, `*.jsonl`, were taken from a llama-server of build b11549 (SmolLM2-135M, one slot)
with a client that wrote down every HTTP chunk. A line has `t`, seconds since the start, and in
most of them `dir`: `req` (`method`, `path`, `body`), `head` and `chunk` (`raw`, as it came), and
how it ended: `end`, `eof`, or `client_close`. What else was seen meanwhile, such as the slot and
the counters, is on lines of its own.

The first letter of a name is the subject: a plain chats; b tool calls; c reasoning; d refusals,
limits, servers that load or die; e clients that leave; f two requests for one slot; g the prompt
cache and slots kept in files; h characters of several tokens; i pings; j the other endpoints.
"""
