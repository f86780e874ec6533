"""The labels of nodes as columns: one per key that a plugin asked for, kept true from then on.

Plugins read a column by `nodes.label_matches` and `nodes.label_numbers`.
"""

from collections import OrderedDict
from collections.abc import Iterable

from lowtide.cluster.columns import FEWEST_COLUMNS, Column, ValueColumn, most_columns
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.table import Table
from lowtide.objects.node import Node


class LabelColumns(Index):
    """A plugin may hold the numbers of one column while it reads others. So no column is dropped
    during a question: where there is no room, a column is made for one read."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.is_crowded = False  # until `make_room`
        self._kept: OrderedDict[str, ValueColumn[str]] = OrderedDict()  # last read comes last

    @property
    def columns(self) -> Iterable[Column]:
        return (each.column for each in self._kept.values())

    def let_columns_go(self) -> None:
        self._kept.clear()
        self.is_crowded = False

    def __getitem__(self, key: str) -> ValueColumn[str]:
        column = self._kept.get(key)
        if column is not None:
            self._kept.move_to_end(key)
            return column
        capacity = self._table.capacity
        column = ValueColumn(capacity)
        column.fill(node.metadata.labels.get(key) for node in self._table.node_objects)
        if len(self._kept) < most_columns(capacity):
            self._kept[key] = column
        self.is_crowded = len(self._kept) >= FEWEST_COLUMNS
        return column

    def make_room(self) -> None:
        """Before a question: an eighth is for labels that it is the first to ask for."""
        most = most_columns(self._table.capacity)
        while len(self._kept) > most - most // 8:
            self._kept.popitem(last=False)
        self.is_crowded = False

    def node_added(self, row: int, node: Node) -> None:
        self._replace(row, {}, node.labels)

    def node_changed(self, row: int, before: Node, after: Node) -> None:
        self._replace(row, before.labels, after.labels)

    def node_removed(self, row: int, node: Node) -> None:
        self._replace(row, node.labels, {})

    def _replace(self, row: int, before: dict[str, str], after: dict[str, str]) -> None:
        kept = self._kept
        if not kept:
            return
        for key in (kept.keys() & before.keys()) | (kept.keys() & after.keys()):
            kept[key].set(row, after.get(key))
