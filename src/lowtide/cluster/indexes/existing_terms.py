"""The affinity terms of placed pods: each distinct term once, and how many pods per node carry it.

InterPodAffinity reads them through `nodes.terms_about` and `nodes.pods_carrying`.
"""

from collections.abc import Iterator

from lowtide.cluster.affinity_terms import AffinityTerm, Purpose, read_terms
from lowtide.cluster.changes import TERMS
from lowtide.cluster.groups import Groups
from lowtide.cluster.indexes.by_node import ByNode
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.placed import Footprint, PlacedPod
from lowtide.cluster.pod_selection import PodSelection
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod

# A term on fewer nodes has no kept column: a column for each term would take too much memory.
_FEWEST_NODES_FOR_COLUMN = 32

# A label that a pod must have to match a term; None if there is no such label.
_Label = tuple[str, str] | None


class CarriedTerm:
    """One distinct term of placed pods."""

    __slots__ = ("filed_under", "purpose", "term", "weight")

    def __init__(
        self, purpose: Purpose, weight: int, term: AffinityTerm, filed_under: tuple[_Label, ...]
    ) -> None:
        self.purpose = purpose
        self.weight = weight  # 0 for a required term
        self.term = term
        self.filed_under = filed_under


_Key = tuple[Purpose, int, AffinityTerm]


class ExistingAffinityTerms(Index):
    """Terms are filed under a label of the pods that they match, so few are checked per pod."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._terms: dict[_Key, CarriedTerm] = {}
        self._filed: Groups[_Label, CarriedTerm, None] = Groups()
        self._of_pod: dict[str, tuple[CarriedTerm, ...]] = {}  # by uid; only pods with terms
        self.pods_carrying: ByNode[CarriedTerm] = ByNode(
            table, is_kept=lambda term: len(self.pods_carrying[term]) >= _FEWEST_NODES_FOR_COLUMN
        )
        self._on_demand.append(self.pods_carrying.columns)

    def concerns(self, footprint: Footprint) -> bool:
        return footprint.has_affinity_terms

    def terms_about(self, pod: Pod) -> Iterator[CarriedTerm]:
        """The terms that may match the pod: the caller checks each term."""
        if not self._terms:
            return
        yield from self._filed.group(None)
        for label in pod.labels.items():
            yield from self._filed.group(label)

    def times_carried(self, carried: CarriedTerm, uid: str) -> int:
        """How often this pod carries the term."""
        return self._of_pod.get(uid, ()).count(carried)

    def is_carried_by_others(self, carried: CarriedTerm, uid: str) -> bool:
        return sum(self.pods_carrying[carried].values()) > self.times_carried(carried, uid)

    def node_added(self, row: int, node: Node) -> None:
        self.pods_carrying.node_added(row, node.name)

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        keys = [key for key in read_terms(placed.pod).carried() if key[2].selection is not None]
        if not keys:
            return 0
        carried = self._of_pod[placed.pod.uid] = tuple(map(self._carried, keys))
        for each in carried:
            self.pods_carrying.add(each, placed.node_name, 1)
        return TERMS

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        carried = self._of_pod.pop(placed.pod.uid, ())
        for each in carried:
            self.pods_carrying.add(each, placed.node_name, -1)
            if not self.pods_carrying[each]:
                self._drop(each)
        return TERMS if carried else 0

    def _carried(self, key: _Key) -> CarriedTerm:
        carried = self._terms.get(key)
        if carried is None:
            assert key[2].selection is not None  # such a term matches no pod
            labels = self._labels_to_file_under(key[2].selection)
            carried = self._terms[key] = CarriedTerm(*key, labels)
            for label in labels:
                self._filed.put(label, carried, None)
        return carried

    def _drop(self, carried: CarriedTerm) -> None:
        del self._terms[carried.purpose, carried.weight, carried.term]
        self.pods_carrying.columns.drop(carried)
        for label in carried.filed_under:
            self._filed.drop(label, carried)

    def _labels_to_file_under(self, selection: PodSelection) -> tuple[_Label, ...]:
        """Labels of which every matching pod has one. Of several such lists, the one that fewest
        other terms are filed under."""
        choices = [
            tuple((each.key, value) for value in dict.fromkeys(each.values))
            for each in selection.requirements
            if each.operator == "In"
        ]
        return min(choices, key=self._crowd, default=(None,))

    def _crowd(self, labels: tuple[tuple[str, str], ...]) -> int:
        return sum(len(self._filed.group(label)) for label in labels)
