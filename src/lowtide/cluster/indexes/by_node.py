"""Numbers by key and node, such as how many pods on a node hold a host port."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic

import numpy as np

from lowtide.cluster.columns import Column, ColumnCache, K
from lowtide.cluster.groups import Groups
from lowtide.cluster.table import Table


class ByNode(Generic[K]):
    """Numbers are kept by node name, for known and unknown nodes, and as columns built on demand: 0
    where there is no number."""

    def __init__(self, table: Table, *, is_kept: Callable[[K], bool] | None = None) -> None:
        self._table = table
        self._numbers: Groups[K, str, int] = Groups()
        self.columns: ColumnCache[K, Column] = ColumnCache(self._make_column, is_kept=is_kept)

    def __getitem__(self, key: K) -> Mapping[str, int]:
        """By node name."""
        return self._numbers.group(key)

    def replace(self, node_name: str, before: Iterable[K], after: Mapping[K, int]) -> None:
        """Replace the numbers of a node, in the columns too. `before` are the keys for which it had
        numbers; a key that is not in `after` then has the number 0."""
        row = self._table.row_of(node_name)
        for key in before:
            if key not in after:
                self._numbers.drop(key, node_name)
                self._write(key, row, 0)
        for key, number in after.items():
            self._numbers.put(key, node_name, number)
            self._write(key, row, number)

    def add(self, key: K, node_name: str, amount: int) -> None:
        number = self[key].get(node_name, 0) + amount
        self.replace(node_name, (key,), {key: number} if number else {})

    def node_added(self, row: int, node_name: str) -> None:
        for key, column in self.columns.items():
            column.array[row] = self[key].get(node_name, 0)

    def _write(self, key: K, row: int | None, number: int) -> None:
        column = self.columns.get(key)
        if column is not None and row is not None:
            column.array[row] = number

    def _make_column(self, key: K) -> Column:
        column = Column(np.int64, 0, self._table.capacity)
        row_by_name = self._table.row_by_name
        for node_name, number in self[key].items():
            if node_name in row_by_name:
                column.array[row_by_name[node_name]] = number
        return column
