"""ADVISES ANOTHER SCHEDULER: which of its nodes the plugins reject, and which they prefer."""
