"""Facts of nodes as columns: whether a node is cordoned, its taints, its declared features."""

import numpy as np

from lowtide.cluster.columns import Column, ValueColumn
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.table import Table
from lowtide.objects.node import Node, Taint


class NodeColumns(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.unschedulable = Column(np.bool_, False, table.capacity)
        self._number_values()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.unschedulable, self.taints.column, self.features.column

    def resize(self) -> None:
        self.unschedulable.resize(self._table.capacity)
        self._number_values()

    def node_added(self, row: int, node: Node) -> None:
        self.unschedulable.array[row] = node.spec.unschedulable
        self.taints.set(row, tuple(node.spec.taints))
        self.features.set(row, frozenset(node.status.declared_features))

    def node_changed(self, row: int, before: Node, after: Node) -> None:
        self.node_added(row, after)

    def node_removed(self, row: int, node: Node) -> None:
        self.taints.set(row, None)
        self.features.set(row, None)

    def _number_values(self) -> None:
        """Number all values again from 0: after a table has shrunk, many numbers may be free."""
        nodes, capacity = self._table.node_objects, self._table.capacity
        self.taints: ValueColumn[tuple[Taint, ...]] = ValueColumn(capacity)
        self.taints.fill(tuple(node.spec.taints) for node in nodes)
        self.features: ValueColumn[frozenset[str]] = ValueColumn(capacity)
        self.features.fill(frozenset(node.status.declared_features) for node in nodes)
