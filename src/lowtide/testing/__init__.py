"""For plugin authors and for our own tests: builders, `place`, a manual clock."""

from lowtide.testing.builders import make_node, make_pod, make_reading, make_state
from lowtide.testing.clock import ManualClock
from lowtide.testing.placing import make_profile, place, rejections, scores

__all__ = [
    "ManualClock",
    "make_node",
    "make_pod",
    "make_profile",
    "make_reading",
    "make_state",
    "place",
    "rejections",
    "scores",
]
