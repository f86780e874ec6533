"""Tools for plugin authors and for our own tests.

Builders make nodes, pods, readings and clusters. `place` asks plugins about one pod. `Cluster` runs
pods through the real scheduler on a manual clock. `check_plugin` finds answers that Lowtide must
not keep."""

from lowtide.testing.builders import (
    make_node,
    make_pod,
    make_reading,
    make_state,
    make_values,
)
from lowtide.testing.checking import check_plugin
from lowtide.testing.clock import ManualClock
from lowtide.testing.cluster import Cluster
from lowtide.testing.placing import make_profile, place, rejections, scores

__all__ = [
    "Cluster",
    "ManualClock",
    "check_plugin",
    "make_node",
    "make_pod",
    "make_profile",
    "make_reading",
    "make_state",
    "make_values",
    "place",
    "rejections",
    "scores",
]
