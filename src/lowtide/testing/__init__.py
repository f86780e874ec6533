"""For plugin authors and for our own tests: builders, also of readings; `place`, which asks plugins
about one pod; `Cluster`, in which pods come and wait while a manual clock goes on; and
`check_plugin`, which finds answers that must not be kept."""

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
