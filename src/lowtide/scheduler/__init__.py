"""One pod at a time: the queue, the decision, the machine that turns events into actions."""
