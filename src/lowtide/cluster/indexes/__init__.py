"""Indexes over nodes, pods and other objects, so that plugins need not search.

Each index is one file here and one line in `ClusterState.__init__`; `index.py` is their protocol.
"""
