"""One form for files: a cluster, what is measured on it, and the pod to place."""
