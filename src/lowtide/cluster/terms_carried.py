"""The affinity terms that placed pods carry, each distinct one once, with the pods on each row.

ClusterState counts pods in and out; InterPodAffinity reads it by `nodes.terms_about` and
`nodes.pods_carrying`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from lowtide.cluster.affinity_terms import NO_TERMS, AffinityTerm, Purpose, read_terms
from lowtide.cluster.columns import Column, IntArray, KeptColumns
from lowtide.cluster.placed import PlacedPod
from lowtide.cluster.pods_matching import PodSelection
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


class TermsCarried:
    """Terms are filed under a label that the pods they are about have: few concern a pod."""

    def __init__(self, row_of: Mapping[str, int]) -> None:
        """`row_of` is ClusterState's own, and changes with it."""
        self._row_of = row_of
        self._terms: dict[_Key, CarriedTerm] = {}
        self._filed: dict[_Label, dict[CarriedTerm, None]] = {}
        self._of_pod: dict[str, tuple[CarriedTerm, ...]] = {}  # by uid, of pods that have any
        self._columns: KeptColumns[CarriedTerm, Column] = KeptColumns()

    @property
    def columns(self) -> Iterable[Column]:
        return self._columns

    def let_columns_go(self) -> None:
        self._columns.clear()

    def about(self, pod: Pod) -> Iterator[CarriedTerm]:
        """Those that may be about the pod: whether they are is for the term to say."""
        if not self._terms:
            return
        yield from self._filed.get(None, ())
        for label in pod.labels.items():
            yield from self._filed.get(label, ())

    def pods_carrying(self, carried: CarriedTerm, capacity: int) -> IntArray:
        """On each row; `capacity` is the length of ClusterState's columns."""

        def make() -> Column:
            column = Column(np.int64, 0, capacity)
            for node_name, count in carried.by_node.items():
                row = self._row_of.get(node_name)
                if row is not None:
                    column.array[row] = count
            return column

        if len(carried.by_node) < _FEWEST_NODES_FOR_COLUMN:
            return make().array
        return self._columns.asked(carried, make).array

    def times_carried(self, carried: CarriedTerm, uid: str) -> int:
        """How often this pod carries it."""
        return self._of_pod.get(uid, ()).count(carried)

    def is_carried_by_others(self, carried: CarriedTerm, uid: str) -> bool:
        return carried.by_node.total() > self.times_carried(carried, uid)

    def count_in(self, placed: PlacedPod) -> bool:
        """Whether it carries any."""
        terms = read_terms(placed.pod)
        if terms is NO_TERMS:
            return False
        keys = [key for key in terms.carried() if key[2].selection is not None]
        if not keys:
            return False
        carried = self._of_pod[placed.pod.uid] = tuple(map(self._kept, keys))
        for each in carried:
            self._add(each, placed.node_name, 1)
        return True

    def count_out(self, placed: PlacedPod) -> bool:
        """Whether it carried any."""
        carried = self._of_pod.pop(placed.pod.uid, ())
        for each in carried:
            self._add(each, placed.node_name, -1)
            if not each.by_node:
                self._drop(each)
        return bool(carried)

    def fill(self, row: int, placed: Iterable[PlacedPod]) -> None:
        """A row that is new to the table, and the pods that were known to be on it."""
        for each in placed:
            for carried in self._of_pod.get(each.pod.uid, ()):
                self._count(carried, row, 1)

    def _add(self, carried: CarriedTerm, node_name: str, times: int) -> None:
        carried.by_node[node_name] += times
        if not carried.by_node[node_name]:
            del carried.by_node[node_name]
        row = self._row_of.get(node_name)
        if row is not None:
            self._count(carried, row, times)

    def _count(self, carried: CarriedTerm, row: int, times: int) -> None:
        column = self._columns.get(carried)
        if column is not None:
            column.array[row] += times

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
        self._columns.drop(carried)
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
