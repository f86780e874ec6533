"""Lowtide beside the real kube-scheduler on nodes that are nearly full, both draining at once: how
many nodes get more than they have, by whom, and how soon one sees what the other has bound."""
