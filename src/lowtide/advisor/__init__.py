"""ADVISES ANOTHER SCHEDULER: what the plugins say of the nodes that it asks about."""
