"""The labels of nodes as columns: one per key that somebody asked for, kept true from then on.

ClusterState tells of nodes that come, change and go; rules read a column by `nodes.label_matches`
and `nodes.label_numbers`.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from lowtide.cluster.columns import FEWEST_COLUMNS, Column, ValueColumn, most_columns
from lowtide.objects.node import Node


class LabelColumns:
    """A rule may hold the numbers of one column while it reads others. So none is let go in the
    course of a question: where there is no room, a column is made for one look."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, ValueColumn[str]] = OrderedDict()  # asked for last comes last

    @property
    def columns(self) -> Iterable[Column]:
        return (each.column for each in self._kept.values())

    def column(self, key: str, *, capacity: int, nodes: Iterable[Node]) -> ValueColumn[str]:
        """`nodes` are all of them, in the order of the rows."""
        column = self._kept.get(key)
        if column is not None:
            self._kept.move_to_end(key)
            return column
        column = ValueColumn(capacity)
        column.fill(node.metadata.labels.get(key) for node in nodes)
        if len(self._kept) < most_columns(capacity):
            self._kept[key] = column
        return column

    def make_room(self, capacity: int) -> None:
        """Before a question: an eighth is for what it asks that nobody asked before."""
        if len(self._kept) < FEWEST_COLUMNS:
            return
        most = most_columns(capacity)
        while len(self._kept) > most - most // 8:
            self._kept.popitem(last=False)

    def replace(self, row: int, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """The labels of the node in this row; none before it came, none after it went."""
        kept = self._kept
        if not kept:
            return
        for key in (kept.keys() & before.keys()) | (kept.keys() & after.keys()):
            kept[key].set(row, after.get(key))

    def let_columns_go(self) -> None:
        self._kept.clear()
