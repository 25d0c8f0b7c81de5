"""`python -m worker`: the one process that owns the slot and the checkpoint database."""

import os

# Read when LangGraph is imported: types in the database that nobody registered are not imported.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

from worker.main import main

if __name__ == "__main__":
    main()
