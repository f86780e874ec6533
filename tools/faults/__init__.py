"""The fault suite: breaks the scheduler and all that it needs while it works, on real parts, and
has an auditor of its own check that nothing is lost, bound twice or put where it must not be."""
