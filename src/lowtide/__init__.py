"""Lowtide places Kubernetes pods on nodes whose network is quiet."""
