"""What nodes have to give and what the pods on them ask for: a column per resource that somebody
asked about, made then and kept true.

ClusterState tells of nodes and pods that come and go; rules read by `nodes.allocatable`,
`nodes.requested` and `nodes.nonzero_requested`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from lowtide.cluster.columns import Column, KeptColumns, Totals
from lowtide.cluster.placed import Footprint, PlacedPod
from lowtide.objects.node import Node
from lowtide.objects.requests import (
    CPU,
    MEMORY,
    NOTHING,
    NodeAmounts,
    are_large,
    node_amounts,
)


class Resources:
    def __init__(self, capacity: int) -> None:
        self.nonzero = {name: Totals(capacity) for name in (CPU, MEMORY)}
        self._nodes: list[NodeAmounts] = []  # by row, all resources
        self._allocatable: KeptColumns[str, Column] = KeptColumns()
        self._requested: KeptColumns[str, Totals] = KeptColumns()
        self._are_had_by_all: dict[str, bool] = {}  # of the resources somebody asked about
        self._asking: Counter[str] = Counter()  # by resource: the pods that ask for it
        self.large_count = 0  # nodes and pods with an amount with which sums and products need care

    @property
    def columns(self) -> Iterator[Column]:
        yield from self._allocatable
        yield from self._requested

    def allocatable(self, resource: str, capacity: int) -> Column:
        def make() -> Column:
            column = Column(np.int64, 0, capacity)
            amounts = [each.of(resource) for each in self._nodes]
            column.array[: len(amounts)] = amounts
            return column

        return self._allocatable.asked(resource, make)

    def all_have(self, resource: str) -> bool:
        known = self._are_had_by_all.get(resource)
        if known is None:
            known = all(each.of(resource) > 0 for each in self._nodes)
            self._are_had_by_all[resource] = known
        return known

    def requested(
        self,
        resource: str,
        *,
        capacity: int,
        row_of: Mapping[str, int],
        placed: Iterable[PlacedPod],
    ) -> Totals:
        """`placed` are all pods, from which a column is made that is not there yet."""
        if resource not in self._asking:
            return Totals(capacity)

        def make() -> Totals:
            column = Totals(capacity)
            for each in placed:
                amount = each.footprint.requests.get(resource, 0)
                row = row_of.get(each.node_name) if amount else None
                if row is not None:
                    column.add(row, amount)
            return column

        return self._requested.asked(resource, make)

    @property
    def clamped_node_count(self) -> int:
        """How many nodes have an amount that does not count as it is written."""
        return sum(each.is_clamped for each in self._nodes)

    # Nodes come, change and go.

    def append(self, node: Node) -> None:
        """In the next row."""
        self._nodes.append(NOTHING)
        self.replace(len(self._nodes) - 1, node)

    def replace(self, row: int, node: Node) -> None:
        before, after = self._nodes[row], node_amounts(node.status.allocatable)
        self._nodes[row] = after
        self.large_count += are_large(after.by_resource) - are_large(before.by_resource)
        self._are_had_by_all.clear()
        for resource in {**before.by_resource, **after.by_resource}:
            column = self._allocatable.get(resource)
            if column is not None:
                column.array[row] = after.of(resource)

    def remove(self, row: int) -> None:
        """The last row takes its place; that of the columns is the table's affair."""
        self.large_count -= are_large(self._nodes[row].by_resource)
        last = self._nodes.pop()
        self._are_had_by_all.clear()
        if row < len(self._nodes):
            self._nodes[row] = last

    def let_columns_go(self) -> None:
        self._allocatable.clear()
        self._requested.clear()

    # Pods come and go.

    def came(self, footprint: Footprint) -> None:
        """A pod, whether its node is known or not."""
        self.large_count += footprint.is_large
        for resource in footprint.requests:
            self._asking[resource] += 1

    def went(self, footprint: Footprint) -> None:
        self.large_count -= footprint.is_large
        for resource in footprint.requests:
            self._asking[resource] -= 1
            if not self._asking[resource]:
                del self._asking[resource]
                self._requested.drop(resource)

    def count(self, row: int, footprint: Footprint, times: int) -> None:
        """A pod is on the row (1), or is no more (-1)."""
        for resource, amount in footprint.requests.items():
            column = self._requested.get(resource)
            if column is not None:
                column.add(row, times * amount)
        self.nonzero[CPU].add(row, times * footprint.nonzero_cpu_milli)
        self.nonzero[MEMORY].add(row, times * footprint.nonzero_memory_bytes)
