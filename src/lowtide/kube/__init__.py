"""Talks to the Kubernetes API server: connection, watches, writes, Events and the leader Lease.

Used by app, which joins it to the scheduler's machine."""
