"""The same scheduler on virtual time: a drawn world, a model of Prometheus, a run, its figures."""
