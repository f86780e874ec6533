"""ADVISES ANOTHER SCHEDULER: what the rules say of the nodes that it asks about."""
