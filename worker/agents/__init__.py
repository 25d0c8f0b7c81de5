"""The agents: each a function `build(deps)` that returns a compiled graph."""
