"""The scheduler's state: nodes and the pods on them, kept as numpy columns."""
