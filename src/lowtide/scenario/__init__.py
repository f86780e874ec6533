"""One file format for a cluster, its measurements and a pod to place."""
