"""How many pods on each row match a selector: columns made at first use and kept true after it.

ClusterState counts pods in and out; rules read a column by `nodes.pods_matching`.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from lowtide.cluster.columns import Column, most_columns
from lowtide.cluster.placed import PlacedPod
from lowtide.objects.matching import matches_all
from lowtide.objects.meta import LabelRequirement, LabelSelector
from lowtide.objects.pod import Pod

# A label that a pod must carry to be counted in a column; None where there is no such label.
_Label = tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class PodSelection:
    """The pods that meet all requirements, in these namespaces; None stands for every namespace."""

    requirements: tuple[LabelRequirement, ...]
    namespaces: frozenset[str] | None
    counts_terminating: bool
    _hash: int = field(init=False, repr=False, compare=False)  # asked for several times

    def __post_init__(self) -> None:
        requirements = tuple([(r.key, r.operator, tuple(r.values)) for r in self.requirements])
        hashed = hash((requirements, self.namespaces, self.counts_terminating))
        object.__setattr__(self, "_hash", hashed)

    @classmethod
    def of(
        cls,
        requirements: Iterable[LabelRequirement],
        *,
        namespaces: Iterable[str] | None,
        counts_terminating: bool,
    ) -> "PodSelection":
        """The same pods give the same selection, in whatever order the requirements come."""
        return cls(
            requirements=tuple(sorted(requirements, key=_order)),
            namespaces=None if namespaces is None else frozenset(namespaces),
            counts_terminating=counts_terminating,
        )

    def __hash__(self) -> int:
        return self._hash

    def matches(self, pod: Pod) -> bool:
        """Whether the pod is one of them, be it terminating or not."""
        is_inside = self.namespaces is None or pod.namespace in self.namespaces
        return is_inside and matches_all(self.requirements, pod.labels)

    def counts(self, pod: Pod) -> bool:
        return (self.counts_terminating or not pod.is_terminating) and self.matches(pod)

    @property
    def labels(self) -> Iterator[tuple[str, str]]:
        """Labels that every one of these pods carries."""
        for each in self.requirements:
            if each.operator == "In" and len(each.values) == 1:
                yield each.key, each.values[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    selection: PodSelection
    column: Column
    filed_under: _Label


class PodsMatching:
    """Columns are filed under a label that their pods carry: a pod concerns few of them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[PodSelection, _Kept] = OrderedDict()  # used last comes last
        self._filed: dict[_Label, list[_Kept]] = {}
        # Of all pods, by namespace, in the order they came: that is how they lie in memory.
        self._uids: dict[str, dict[str, None]] = {}

    @property
    def columns(self) -> Iterable[Column]:
        return (kept.column for kept in self._kept.values())

    def let_columns_go(self) -> None:
        self._kept.clear()
        self._filed.clear()

    def column(
        self,
        selection: PodSelection,
        *,
        capacity: int,
        row_of: Mapping[str, int],
        placed: Mapping[str, PlacedPod],
    ) -> Column:
        """`placed` are all pods by uid, from which a column is made that is not there yet."""
        kept = self._kept.get(selection)
        if kept is not None:
            self._kept.move_to_end(selection)
            return kept.column
        kept = self._keep(selection, capacity)
        key, value = kept.filed_under or ("", None)
        for uid in self._uids_in(selection.namespaces):
            each = placed[uid]
            # A look at one label spares most pods the whole question.
            if each.pod.metadata.labels.get(key) == value and selection.counts(each.pod):
                row = row_of.get(each.node_name)
                if row is not None:
                    kept.column.array[row] += 1
        return kept.column

    def count(self, row: int | None, placed: PlacedPod, times: int) -> None:
        """A pod came (1) or went (-1); `row` is None where its node is not known."""
        meta = placed.pod.metadata
        uids = self._uids.setdefault(meta.namespace, {})
        if times > 0:
            uids[meta.uid] = None
        else:
            uids.pop(meta.uid, None)
            if not uids:
                del self._uids[meta.namespace]
        if row is not None and self._kept:
            self._add(row, placed.pod, times)

    def fill(self, row: int, placed: Iterable[PlacedPod]) -> None:
        """A row that is new to the table, and the pods that were known to be on it."""
        if self._kept:
            for each in placed:
                self._add(row, each.pod, 1)

    def _add(self, row: int, pod: Pod, times: int) -> None:
        for label in (None, *pod.labels.items()):
            for kept in self._filed.get(label, ()):
                if kept.selection.counts(pod):
                    kept.column.array[row] += times

    def _keep(self, selection: PodSelection, capacity: int) -> _Kept:
        while len(self._kept) >= most_columns(capacity):
            _, oldest = self._kept.popitem(last=False)
            self._filed[oldest.filed_under].remove(oldest)
            if not self._filed[oldest.filed_under]:
                del self._filed[oldest.filed_under]
        # Under the label that fewest other columns have: the others may be on every pod.
        label = min(selection.labels, key=lambda each: len(self._filed.get(each, ())), default=None)
        kept = _Kept(selection, Column(np.int64, 0, capacity), label)
        self._kept[selection] = kept
        self._filed.setdefault(label, []).append(kept)
        return kept

    def _uids_in(self, namespaces: frozenset[str] | None) -> Iterator[str]:
        for namespace in self._uids if namespaces is None else namespaces:
            yield from self._uids.get(namespace, ())


def requirements_of(selector: LabelSelector) -> tuple[LabelRequirement, ...]:
    """All that a selector asks for, its `matchLabels` too, as requirements."""
    return (*labels_required(selector.match_labels), *selector.match_expressions)


def labels_required(labels: Mapping[str, str]) -> tuple[LabelRequirement, ...]:
    """These labels with these values, as requirements."""
    return tuple(LabelRequirement(key, "In", [value]) for key, value in labels.items())


def _order(requirement: LabelRequirement) -> tuple[str, str, list[str]]:
    return (requirement.key, requirement.operator, requirement.values)
