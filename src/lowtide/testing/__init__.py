"""Test helpers for plugin authors and for this project's own tests.

`make_pod`, `make_node` and `make_reading` build objects, `place` decides about one pod, `Cluster`
runs the scheduler on a manual clock, and `check_plugin` finds plugins whose answers cannot be kept.
"""

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
