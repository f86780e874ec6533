"""The labels of nodes as columns: one per key that a plugin has read.

Plugins read a column through `nodes.label_matches` and `nodes.label_numbers`.
"""

from collections import OrderedDict
from collections.abc import Iterable

from lowtide.cluster.columns import FEWEST_COLUMNS, Column, ValueColumn, most_columns
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.table import Table
from lowtide.objects.node import Node


class LabelColumns(Index):
    """A plugin may hold the numbers of one column while it reads others. So no column is dropped
    during a decision: at the limit, a further column is built for one read only."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.is_crowded = False  # whether `make_room` should be called before the next decision
        self._kept: OrderedDict[str, ValueColumn[str]] = OrderedDict()  # last read comes last

    @property
    def columns(self) -> Iterable[Column]:
        return (each.column for each in self._kept.values())

    def drop_columns(self) -> None:
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
        """Keep an eighth of the limit free for labels that the next decision is first to read."""
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
