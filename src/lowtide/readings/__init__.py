"""Measurements of nodes, without any I/O: which queries to send, which node a series belongs to,
and how far to trust it.

Telemetry fills them, plugins read them. Time is always an argument."""
