"""The allocatable amounts of nodes: one column per resource that a plugin has read.

Plugins read a column through `nodes.allocatable`.
"""

import numpy as np

from lowtide.cluster.columns import Column, ColumnCache
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.requests import NOTHING, NodeAmounts, are_large, node_amounts


class Allocatable(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.amounts: ColumnCache[str, Column] = ColumnCache(self._make_column)  # by resource
        self.large_count = 0  # how many nodes have an amount so large that sums may overflow
        self._on_demand.append(self.amounts)
        self._amounts_by_row: list[NodeAmounts] = []  # by row: all resources
        self._all_have: dict[str, bool] = {}  # answers of `all_have` since the last change

    def all_have(self, resource: str) -> bool:
        """Whether every node can allocate some of this resource."""
        known = self._all_have.get(resource)
        if known is None:
            known = all(each.by_resource.get(resource) for each in self._amounts_by_row)
            self._all_have[resource] = known
        return known

    @property
    def clamped_count(self) -> int:
        """How many nodes have an amount that was clamped or cannot be parsed."""
        return sum(each.is_clamped for each in self._amounts_by_row)

    def node_added(self, row: int, node: Node) -> None:
        self._amounts_by_row.append(NOTHING)
        self._replace(row, node)

    def node_changed(self, row: int, before: Node, after: Node) -> None:
        if before.status.allocatable != after.status.allocatable:
            self._replace(row, after)

    def node_removed(self, row: int, node: Node) -> None:
        self.large_count -= are_large(self._amounts_by_row[row].by_resource)
        self._all_have.clear()
        last = self._amounts_by_row.pop()
        if row < len(self._amounts_by_row):
            self._amounts_by_row[row] = last

    def _make_column(self, resource: str) -> Column:
        column = Column(np.int64, 0, self._table.capacity)
        column.array[: len(self._amounts_by_row)] = [
            each.by_resource.get(resource, 0) for each in self._amounts_by_row
        ]
        return column

    def _replace(self, row: int, node: Node) -> None:
        before, after = self._amounts_by_row[row], node_amounts(node.status.allocatable)
        self._amounts_by_row[row] = after
        self.large_count += are_large(after.by_resource) - are_large(before.by_resource)
        self._all_have.clear()
        for resource in {**before.by_resource, **after.by_resource}:
            column = self.amounts.get(resource)
            if column is not None:
                column.array[row] = after.amount_of(resource)
