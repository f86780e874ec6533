"""How many pods on each row match a selection: one column per selection that a plugin has read.

Plugins read a column through `nodes.pods_matching`.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lowtide.cluster.columns import Column, most_columns
from lowtide.cluster.groups import Groups
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.placed import PlacedPod
from lowtide.cluster.pod_selection import PodSelection
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod

# A label that a pod must have to be counted in a column; None if there is no such label.
_Label = tuple[str, str] | None


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    selection: PodSelection
    column: Column
    filed_under: _Label


class PodsMatching(Index):
    """Columns are filed under a label of the pods that they count, so that a pod concerns few."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.is_idle = True  # until there is a column
        self._kept: OrderedDict[PodSelection, _Kept] = OrderedDict()  # used last comes last
        self._filed: Groups[_Label, PodSelection, _Kept] = Groups()

    @property
    def columns(self) -> Iterable[Column]:
        return (kept.column for kept in self._kept.values())

    def drop_columns(self) -> None:
        self._kept.clear()
        self._filed.clear()
        self.is_idle = True

    def __getitem__(self, selection: PodSelection) -> Column:
        kept = self._kept.get(selection)
        if kept is not None:
            self._kept.move_to_end(selection)
            return kept.column
        kept = self._keep(selection)
        key, value = kept.filed_under or ("", None)
        for each in self._table.placed_in(selection.namespaces):
            # Comparing one label first saves most pods the full match.
            if each.pod.metadata.labels.get(key) == value and selection.counts(each.pod):
                row = self._table.row_of(each.node_name)
                if row is not None:
                    kept.column.array[row] += 1
        return kept.column

    def node_added(self, row: int, node: Node) -> None:
        for placed in self._table.placed_on(node.name).values():
            self._add(row, placed.pod, 1)

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        self._add(row, placed.pod, 1)
        return 0

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        self._add(row, placed.pod, -1)
        return 0

    def pod_relabelled(self, row: int | None, before: PlacedPod, after: PlacedPod) -> int:
        self._add(row, before.pod, -1)
        self._add(row, after.pod, 1)
        return 0

    def _add(self, row: int | None, pod: Pod, times: int) -> None:
        if row is None:
            return
        for label in (None, *pod.labels.items()):
            for kept in self._filed.group(label).values():
                if kept.selection.counts(pod):
                    kept.column.array[row] += times

    def _keep(self, selection: PodSelection) -> _Kept:
        capacity = self._table.capacity
        while len(self._kept) >= most_columns(capacity):
            _, oldest = self._kept.popitem(last=False)
            self._filed.drop(oldest.filed_under, oldest.selection)
        # File under the label that the fewest columns share: other labels may be on every pod.
        label = min(selection.labels, key=lambda each: len(self._filed.group(each)), default=None)
        kept = _Kept(selection, Column(np.int64, 0, capacity), label)
        self._kept[selection] = kept
        self._filed.put(label, selection, kept)
        self.is_idle = False
        return kept
