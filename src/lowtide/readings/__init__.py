"""What is measured, without any I/O: what to ask, whose series it is, and how far to trust it.

Filled by telemetry, read by the rules; time is an argument everywhere."""
