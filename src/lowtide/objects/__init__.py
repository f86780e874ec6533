"""Kubernetes objects as frozen data decoded from JSON, and functions on them. No I/O."""
