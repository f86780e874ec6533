"""The lowest priority of the pods on each row: preemption sees at a glance where it may find
victims. ClusterState keeps it true; rules read it by `nodes.lowest_priority`."""

from collections.abc import Iterable

import numpy as np

from lowtide.cluster.columns import Column
from lowtide.cluster.placed import PlacedPod
from lowtide.objects.meta import as_int32

NO_PODS = 2**31  # more than any pod's priority


class LowestPriorities:
    def __init__(self, capacity: int) -> None:
        self.column = Column(np.int64, NO_PODS, capacity)

    def came(self, row: int, placed: PlacedPod) -> None:
        priority = as_int32(placed.pod.spec.priority)
        if priority < self.column.array[row]:
            self.column.array[row] = priority

    def went(self, row: int, placed: PlacedPod, left: Iterable[PlacedPod]) -> None:
        if as_int32(placed.pod.spec.priority) == self.column.array[row]:
            self.column.array[row] = lowest_priority_of(left)


def lowest_priority_of(pods: Iterable[PlacedPod]) -> int:
    return min((as_int32(placed.pod.spec.priority) for placed in pods), default=NO_PODS)
