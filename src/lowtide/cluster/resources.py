"""What nodes have to give and what the pods on them ask for: a column per resource that somebody
asked about, made then and kept true.

ClusterState tells of nodes and pods that come and go; rules read by `nodes.allocatable`,
`nodes.requested` and `nodes.nonzero_requested`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from lowtide.cluster.columns import Column, KeptColumns
from lowtide.cluster.placed import Footprint, PlacedPod
from lowtide.objects.node import Node
from lowtide.objects.quantity import QuantityError
from lowtide.objects.requests import CPU, MEMORY, amounts_as_int


class Resources:
    def __init__(self, capacity: int) -> None:
        self.nonzero = {name: Column(np.int64, 0, capacity) for name in (CPU, MEMORY)}
        self._amounts: list[Mapping[str, int]] = []  # by row: what its node has, all resources
        self._allocatable: KeptColumns[str] = KeptColumns()
        self._requested: KeptColumns[str] = KeptColumns()
        self._are_had_by_all: dict[str, bool] = {}  # of the resources somebody asked about
        self._asking: Counter[str] = Counter()  # by resource: the pods that ask for it

    @property
    def columns(self) -> Iterator[Column]:
        yield from self._allocatable
        yield from self._requested

    def allocatable(self, resource: str, capacity: int) -> Column:
        def make() -> Column:
            column = Column(np.int64, 0, capacity)
            column.array[: len(self._amounts)] = [each.get(resource, 0) for each in self._amounts]
            return column

        return self._allocatable.asked(resource, make)

    def all_have(self, resource: str) -> bool:
        known = self._are_had_by_all.get(resource)
        if known is None:
            known = all(each.get(resource, 0) > 0 for each in self._amounts)
            self._are_had_by_all[resource] = known
        return known

    def requested(
        self,
        resource: str,
        *,
        capacity: int,
        row_of: Mapping[str, int],
        placed: Iterable[PlacedPod],
    ) -> Column:
        """`placed` are all pods, from which a column is made that is not there yet."""
        if resource not in self._asking:
            return Column(np.int64, 0, capacity)

        def make() -> Column:
            column = Column(np.int64, 0, capacity)
            for each in placed:
                amount = each.footprint.requests.get(resource)
                row = row_of.get(each.node_name) if amount else None
                if row is not None:
                    column.array[row] += amount
            return column

        return self._requested.asked(resource, make)

    # Nodes come, change and go.

    def append(self, node: Node) -> None:
        """In the next row."""
        self._amounts.append({})
        self.replace(len(self._amounts) - 1, node)

    def replace(self, row: int, node: Node) -> None:
        before, after = self._amounts[row], _allocatable_of(node)
        self._amounts[row] = after
        self._are_had_by_all.clear()
        for resource in {**before, **after}:
            column = self._allocatable.get(resource)
            if column is not None:
                column.array[row] = after.get(resource, 0)

    def remove(self, row: int) -> None:
        """The last row takes its place; that of the columns is the table's affair."""
        last = self._amounts.pop()
        self._are_had_by_all.clear()
        if row < len(self._amounts):
            self._amounts[row] = last

    def let_columns_go(self) -> None:
        self._allocatable.clear()
        self._requested.clear()

    # Pods come and go.

    def came(self, footprint: Footprint) -> None:
        """A pod, whether its node is known or not."""
        for resource in footprint.requests:
            self._asking[resource] += 1

    def went(self, footprint: Footprint) -> None:
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
                column.array[row] += times * amount
        self.nonzero[CPU].array[row] += times * footprint.nonzero_cpu_milli
        self.nonzero[MEMORY].array[row] += times * footprint.nonzero_memory_bytes


def _allocatable_of(node: Node) -> dict[str, int]:
    try:
        return amounts_as_int(node.status.allocatable, f"node {node.name} status.allocatable")
    except QuantityError:
        return {}
