"""Which nodes have something, as columns: made at first use and kept true from then on.

Storage tells of the in-tree drivers that were migrated there, and of the volumes that pods use;
ClusterState moves the columns with their rows."""

from collections.abc import Iterable, Mapping, Set
from typing import Generic

import numpy as np

from lowtide.cluster.columns import BoolArray, Column, K, KeptColumns


class NodesWith(Generic[K]):
    def __init__(self, row_of: Mapping[str, int]) -> None:
        self._row_of = row_of
        self._names: dict[K, set[str]] = {}  # of nodes that are known or not
        self._kept: KeptColumns[K, Column] = KeptColumns()

    @property
    def columns(self) -> Iterable[Column]:
        return self._kept

    def let_columns_go(self) -> None:
        self._kept.clear()

    def names(self, key: K) -> Set[str]:
        return self._names.get(key, set())

    def column(self, key: K, capacity: int) -> BoolArray:
        def make() -> Column:
            column = Column(np.bool_, False, capacity)
            rows = [row for name in self.names(key) if (row := self._row_of.get(name)) is not None]
            column.array[rows] = True
            return column

        return self._kept.asked(key, make).array

    def fill(self, row: int, node_name: str) -> None:
        """A node has come to this row."""
        for key, column in self._kept.items():
            column.array[row] = node_name in self.names(key)

    def replace(self, node_name: str, before: Set[K], after: Set[K]) -> None:
        """What the node has."""
        for key in after - before:
            self._names.setdefault(key, set()).add(node_name)
            self._write(node_name, key, has_it=True)
        for key in before - after:
            self._names[key].discard(node_name)
            if not self._names[key]:
                del self._names[key]
            self._write(node_name, key, has_it=False)

    def _write(self, node_name: str, key: K, *, has_it: bool) -> None:
        row, column = self._row_of.get(node_name), self._kept.get(key)
        if row is not None and column is not None:
            column.array[row] = has_it
