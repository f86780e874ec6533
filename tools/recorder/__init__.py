"""Records what a real kube-scheduler of any version decides, for tests/oracle and for the docs.

Run as `python tools/recorder`; nothing in src/lowtide knows of it."""
