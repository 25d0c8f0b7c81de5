"""A worker that dies at a chosen moment, and what the next one makes of its turn."""
