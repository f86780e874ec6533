"""Totals of the pods on each row: their number, their requests, and their lowest priority.

Plugins read them through `nodes.requested`, `nodes.nonzero_requested`, `nodes.pod_count` and
`nodes.lowest_priority`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from lowtide.cluster.columns import Column, ColumnCache, Totals
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.placed import NONZERO, PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.meta import as_int32
from lowtide.objects.node import Node
from lowtide.objects.quantity import LARGEST
from lowtide.objects.requests import CPU, MEMORY

# Almost every pod requests these, so they are built in advance.
_ALWAYS_KEPT = (CPU, MEMORY, *NONZERO.values())
NO_PODS = 2**31  # more than any pod's priority


class PodTotals(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.pod_count = Column(np.int64, 0, table.capacity)
        self.lowest_priority = Column(np.int64, NO_PODS, table.capacity)
        self.large_count = 0  # how many pods have an amount so large that sums may overflow
        self._pods_requesting: Counter[str] = Counter()  # by resource: how many pods request it
        self._always_kept = {each: Totals(table.capacity) for each in _ALWAYS_KEPT}
        # By key of Footprint.amounts. No column is kept for a resource that no pod requests.
        self.requested: ColumnCache[str, Totals] = ColumnCache(
            self._make_total, is_kept=self._pods_requesting.__contains__
        )
        self._on_demand.append(self.requested)

    @property
    def columns(self) -> Iterator[Column]:
        yield self.pod_count
        yield self.lowest_priority
        yield from self._always_kept.values()
        yield from self.requested

    def total(self, resource: str) -> Totals:
        """What pods request of this resource, by its name in Footprint.amounts."""
        return self._always_kept.get(resource) or self.requested[resource]

    def node_added(self, row: int, node: Node) -> None:
        for placed in self._table.placed_on(node.name).values():
            self._add(row, placed, times=1)

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        footprint = placed.footprint
        self.large_count += footprint.is_large
        for resource in footprint.amounts:
            self._pods_requesting[resource] += 1
        if row is not None:
            self._add(row, placed, times=1)
        return 0

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        footprint = placed.footprint
        self.large_count -= footprint.is_large
        if row is not None:
            self._add(row, placed, times=-1)
        for resource in footprint.amounts:
            self._pods_requesting[resource] -= 1
            if not self._pods_requesting[resource]:
                del self._pods_requesting[resource]
                self.requested.drop(resource)
        return 0

    def _add(self, row: int, placed: PlacedPod, *, times: int) -> None:
        """`times` is 1, or -1 if the pod has left the row."""
        self.pod_count.array[row] += times
        for resource, amount in placed.footprint.amounts.items():
            total = self._always_kept.get(resource) or self.requested.get(resource)
            if total is None:
                continue
            summed = total.array.item(row) + times * amount
            if summed > LARGEST or total.beyond:
                total.add(row, times * amount)
            else:
                total.array[row] = summed
        priority, lowest = as_int32(placed.pod.spec.priority), self.lowest_priority.array
        if times > 0:
            lowest[row] = min(priority, lowest.item(row))
        elif priority == lowest.item(row):
            lowest[row] = lowest_priority_of(self._table.placed_on(placed.node_name).values())

    def _make_total(self, resource: str) -> Totals:
        total, row_by_name = Totals(self._table.capacity), self._table.row_by_name
        for placed in self._table.all_placed().values():
            amount = placed.footprint.amounts.get(resource)
            if amount and placed.node_name in row_by_name:
                total.add(row_by_name[placed.node_name], amount)
        return total


def lowest_priority_of(pods: Iterable[PlacedPod]) -> int:
    return min((as_int32(placed.pod.spec.priority) for placed in pods), default=NO_PODS)
