"""What nodes have to give: a column per resource that a plugin asked about, kept true from then on.

Plugins read a column by `nodes.allocatable`.
"""

import numpy as np

from lowtide.cluster.columns import Column, KeptColumns
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.requests import NOTHING, NodeAmounts, are_large, node_amounts


class Allocatable(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.amounts: KeptColumns[str, Column] = KeptColumns(self._make_column)  # by resource
        self.large_count = 0  # nodes with an amount with which sums and products need care
        self._on_demand.append(self.amounts)
        self._of_rows: list[NodeAmounts] = []  # all resources
        self._are_had_by_all: dict[str, bool] = {}  # of the resources somebody asked about

    def all_have(self, resource: str) -> bool:
        """Whether every node has some of it to give."""
        known = self._are_had_by_all.get(resource)
        if known is None:
            known = all(each.by_resource.get(resource) for each in self._of_rows)
            self._are_had_by_all[resource] = known
        return known

    @property
    def clamped_count(self) -> int:
        """How many nodes have an amount that does not count as it is written."""
        return sum(each.is_clamped for each in self._of_rows)

    def node_added(self, row: int, node: Node) -> None:
        self._of_rows.append(NOTHING)
        self._replace(row, node)

    def node_changed(self, row: int, before: Node, after: Node) -> None:
        if before.status.allocatable != after.status.allocatable:
            self._replace(row, after)

    def node_removed(self, row: int, node: Node) -> None:
        self.large_count -= are_large(self._of_rows[row].by_resource)
        self._are_had_by_all.clear()
        last = self._of_rows.pop()
        if row < len(self._of_rows):
            self._of_rows[row] = last

    def _make_column(self, resource: str) -> Column:
        column = Column(np.int64, 0, self._table.capacity)
        column.array[: len(self._of_rows)] = [
            each.by_resource.get(resource, 0) for each in self._of_rows
        ]
        return column

    def _replace(self, row: int, node: Node) -> None:
        before, after = self._of_rows[row], node_amounts(node.status.allocatable)
        self._of_rows[row] = after
        self.large_count += are_large(after.by_resource) - are_large(before.by_resource)
        self._are_had_by_all.clear()
        for resource in {**before.by_resource, **after.by_resource}:
            column = self.amounts.get(resource)
            if column is not None:
                column.array[row] = after.amount_of(resource)
