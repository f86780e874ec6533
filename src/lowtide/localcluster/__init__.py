"""The embedded cluster: an in-memory API server on loopback, and traffic to measure.

For the demo and for fast tests; it never stands in for a real API server where a claim about real
clusters is made."""

from lowtide.localcluster.binding import bind
from lowtide.localcluster.cluster import TRAFFIC_ANNOTATION, LocalCluster
from lowtide.localcluster.demo import demo_nodes
from lowtide.localcluster.failures import StatusError
from lowtide.localcluster.faults import Drop, Faults
from lowtide.localcluster.nodes import LocalNode
from lowtide.localcluster.store import Part, Store
from lowtide.localcluster.traffic import Background, Direction, Link, TrafficModel

__all__ = [
    "TRAFFIC_ANNOTATION",
    "Background",
    "Direction",
    "Drop",
    "Faults",
    "Link",
    "LocalCluster",
    "LocalNode",
    "Part",
    "StatusError",
    "Store",
    "TrafficModel",
    "bind",
    "demo_nodes",
]
