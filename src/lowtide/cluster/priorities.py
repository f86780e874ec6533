"""The lowest priority of the pods on each row: preemption sees at a glance where it may find
victims. ClusterState keeps it true; rules read it by `nodes.lowest_priority`."""

from collections.abc import Iterable

import numpy as np

from lowtide.cluster.columns import Column
from lowtide.cluster.placed import PlacedPod

NO_PODS = 2**31  # more than any pod's priority


class LowestPriorities:
    def __init__(self, capacity: int) -> None:
        self.column = Column(np.int64, NO_PODS, capacity)

    def came(self, row: int, placed: PlacedPod) -> None:
        if placed.pod.spec.priority < self.column.array[row]:
            self.column.array[row] = placed.pod.spec.priority

    def went(self, row: int, placed: PlacedPod, left: Iterable[PlacedPod]) -> None:
        if placed.pod.spec.priority == self.column.array[row]:
            self.column.array[row] = lowest_priority_of(left)


def lowest_priority_of(pods: Iterable[PlacedPod]) -> int:
    return min((placed.pod.spec.priority for placed in pods), default=NO_PODS)
