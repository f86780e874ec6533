"""The affinity terms of placed pods, each distinct term once, with the pods on each row.

InterPodAffinity reads it by `nodes.terms_about` and `nodes.pods_carrying`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from lowtide.cluster.affinity_terms import AffinityTerm, Purpose, read_terms
from lowtide.cluster.changes import TERMS
from lowtide.cluster.columns import Column, KeptColumns
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.placed import Footprint, PlacedPod
from lowtide.cluster.pod_selection import PodSelection
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod

# Terms on fewer nodes are added up one by one; a column for each would take too much room.
_FEWEST_NODES_FOR_COLUMN = 32

# A label that a pod must have for a term to be about it; None where there is no such label.
_Label = tuple[str, str] | None


class CarriedTerm:
    """One distinct term, and how many pods carry it on which node."""

    __slots__ = ("by_node", "filed_under", "purpose", "term", "weight")

    def __init__(
        self, purpose: Purpose, weight: int, term: AffinityTerm, filed_under: tuple[_Label, ...]
    ) -> None:
        self.purpose = purpose
        self.weight = weight  # 0 for a required term
        self.term = term
        self.filed_under = filed_under
        self.by_node: Counter[str] = Counter()  # by node name, known or not


_Key = tuple[Purpose, int, AffinityTerm]


class ExistingAffinityTerms(Index):
    """Terms are filed under a label that the pods they are about have: few concern a pod."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._terms: dict[_Key, CarriedTerm] = {}
        self._filed: dict[_Label, dict[CarriedTerm, None]] = {}
        self._of_pod: dict[str, tuple[CarriedTerm, ...]] = {}  # by uid, of pods that have any
        self.pods_carrying: KeptColumns[CarriedTerm, Column] = KeptColumns(
            self._make_column,
            is_kept=lambda carried: len(carried.by_node) >= _FEWEST_NODES_FOR_COLUMN,
        )

    @property
    def columns(self) -> Iterable[Column]:
        return self.pods_carrying

    def let_columns_go(self) -> None:
        self.pods_carrying.clear()

    def concerns(self, footprint: Footprint) -> bool:
        return footprint.has_affinity_terms

    def about(self, pod: Pod) -> Iterator[CarriedTerm]:
        """Those that may be about the pod: ask each term whether it is."""
        if not self._terms:
            return
        yield from self._filed.get(None, ())
        for label in pod.labels.items():
            yield from self._filed.get(label, ())

    def times_carried(self, carried: CarriedTerm, uid: str) -> int:
        """How often this pod carries it."""
        return self._of_pod.get(uid, ()).count(carried)

    def is_carried_by_others(self, carried: CarriedTerm, uid: str) -> bool:
        return carried.by_node.total() > self.times_carried(carried, uid)

    def node_added(self, row: int, node: Node) -> None:
        for uid in self._table.placed_on(node.name):
            for carried in self._of_pod.get(uid, ()):
                self._count(carried, row, 1)

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        keys = [key for key in read_terms(placed.pod).carried() if key[2].selection is not None]
        if not keys:
            return 0
        carried = self._of_pod[placed.pod.uid] = tuple(map(self._kept, keys))
        for each in carried:
            each.by_node[placed.node_name] += 1
            self._count(each, row, 1)
        return TERMS

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        carried, node_name = self._of_pod.pop(placed.pod.uid, ()), placed.node_name
        for each in carried:
            each.by_node[node_name] -= 1
            self._count(each, row, -1)
            if not each.by_node[node_name]:
                del each.by_node[node_name]
            if not each.by_node:
                self._drop(each)
        return TERMS if carried else 0

    def _count(self, carried: CarriedTerm, row: int | None, times: int) -> None:
        column = self.pods_carrying.get(carried)
        if column is not None and row is not None:
            column.array[row] += times

    def _make_column(self, carried: CarriedTerm) -> Column:
        column = Column(np.int64, 0, self._table.capacity)
        for node_name, count in carried.by_node.items():
            row = self._table.row_of(node_name)
            if row is not None:
                column.array[row] = count
        return column

    def _kept(self, key: _Key) -> CarriedTerm:
        carried = self._terms.get(key)
        if carried is None:
            assert key[2].selection is not None  # such a term is about no pod
            labels = self._labels_to_file_under(key[2].selection)
            carried = self._terms[key] = CarriedTerm(*key, labels)
            for label in labels:
                self._filed.setdefault(label, {})[carried] = None
        return carried

    def _drop(self, carried: CarriedTerm) -> None:
        del self._terms[carried.purpose, carried.weight, carried.term]
        self.pods_carrying.drop(carried)
        for label in carried.filed_under:
            del self._filed[label][carried]
            if not self._filed[label]:
                del self._filed[label]

    def _labels_to_file_under(self, selection: PodSelection) -> tuple[_Label, ...]:
        """One of which every pod has that matches; those that fewest other terms have."""
        choices = [
            tuple((each.key, value) for value in dict.fromkeys(each.values))
            for each in selection.requirements
            if each.operator == "In"
        ]
        return min(choices, key=self._crowd, default=(None,))

    def _crowd(self, labels: tuple[tuple[str, str], ...]) -> int:
        return sum(len(self._filed.get(label, ())) for label in labels)
