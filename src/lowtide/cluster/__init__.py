"""What the scheduler believes: nodes and the pods on them, kept as numpy columns."""
