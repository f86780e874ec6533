"""The table that rules read: one row per node, a column per fact.

A Nodes is a face on ClusterState: all rows, some of them (`take`), or rows as they would be with
pods added or removed (`with_pods`, `without`). Rules use positions 0..len-1 of the face they got.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import BoolArray, FloatArray, IntArray, Rows, by_value
from lowtide.cluster.overlay import Amount, Overlay
from lowtide.cluster.placed import HostPort, PlacedPod, footprint_of
from lowtide.cluster.pods_matching import PodSelection
from lowtide.cluster.priorities import lowest_priority_of
from lowtide.cluster.terms_carried import CarriedTerm
from lowtide.cluster.volumes_on_nodes import VolumesOnNodes
from lowtide.objects.matching import matches_requirement
from lowtide.objects.meta import LabelRequirement
from lowtide.objects.node import Node, Taint
from lowtide.objects.pod import Pod
from lowtide.objects.requests import PODS as POD_COUNT

if TYPE_CHECKING:
    from lowtide.cluster.state import ClusterState

T = TypeVar("T")


class Nodes:
    def __init__(
        self,
        state: ClusterState,
        rows: Rows | None = None,
        overlays: Mapping[int, Overlay] | None = None,
    ) -> None:
        self._state = state
        self._rows = rows
        self._overlays = overlays or {}

    def __len__(self) -> int:
        return self._state.count if self._rows is None else len(self._rows)

    # Which rows.

    @property
    def rows(self) -> Rows:
        """The row of each position in the whole table."""
        return np.arange(self._state.count) if self._rows is None else self._rows

    @property
    def everything(self) -> Nodes:
        """The whole table as it is, for rules that read the pods of other nodes."""
        return Nodes(self._state) if self._overlays or self._rows is not None else self

    def take(self, positions: Rows) -> Nodes:
        rows = positions if self._rows is None else self._rows[positions]
        if not self._overlays:
            return Nodes(self._state, rows)
        kept = {
            new: self._overlays[int(old)]
            for new, old in enumerate(positions)
            if int(old) in self._overlays
        }
        return Nodes(self._state, rows, kept)

    def with_pods(self, pods: Mapping[int, Sequence[Pod]]) -> Nodes:
        """The table as if each position had these pods too, and no other position changed."""
        return self._overlaid(
            {at: Overlay(added=tuple(_imagined(pod) for pod in each)) for at, each in pods.items()}
        )

    def without(self, pods: Mapping[int, Collection[str]]) -> Nodes:
        """The table as if each position had lost the pods with these uids."""
        return self._overlaid({at: Overlay(removed=frozenset(uids)) for at, uids in pods.items()})

    def returning(self, pods: Mapping[int, str]) -> Nodes:
        """The table as if of those that a position had lost, the pod with this uid was back."""
        returned = {
            at: self._overlays[at].returning(self._state.placed_on(self._name(at))[uid])
            for at, uid in pods.items()
        }
        return Nodes(self._state, self._rows, {**self._overlays, **returned})

    # What a node is.

    def node(self, position: int) -> Node:
        return self._state.node_at(self._row(position))

    @property
    def names(self) -> list[str]:
        names = self._state.names
        return names if self._rows is None else [names[row] for row in self._rows]

    def position_of(self, node_name: str) -> int | None:
        """Where this node stands; None where it is not among these."""
        row = self._state.row_of(node_name)
        if row is None or self._rows is None:
            return row
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None

    @property
    def unschedulable(self) -> BoolArray:
        return self._gather(self._state.unschedulable.array)

    def by_taints(self, judge: Callable[[tuple[Taint, ...]], int]) -> IntArray:
        """What `judge` says of each node's taints: asked once per distinct list of them."""
        return by_value(
            self._gather(self._state.taint_set.array),
            self._state.taint_sets.values,
            lambda taints: judge(taints or ()),
            np.int64,
        )

    def label_matches(self, requirement: LabelRequirement) -> BoolArray:
        """Where a node's label meets the requirement: asked once per distinct value."""
        column = self._state.label_column(requirement.key)
        return by_value(
            self._gather(column.column.array),
            column.interned.values,
            lambda value: matches_requirement(requirement, value),
        )

    def label_numbers(self, key: str) -> tuple[npt.NDArray[np.int32], Sequence[str | None]]:
        """The number of each node's value of this label, below 0 without it; values by number,
        None for one that no node has. Numbers hold for one question."""
        column = self._state.label_column(key)
        return self._gather(column.column.array), column.interned.values

    def name_matches(self, requirement: LabelRequirement) -> BoolArray:
        """The same for the node's name."""
        return np.fromiter(
            (matches_requirement(requirement, name) for name in self.names), np.bool_, len(self)
        )

    def image_node_count(self, image: str) -> int:
        """How many nodes of the whole table hold the image of this full name."""
        return self._state.images.node_count(image)

    def image_sizes(self, image: str) -> IntArray:
        """How many bytes of it each node holds; 0 where it is not."""
        column = self._state.images.column(
            image, capacity=len(self._state.taint_set.array), row_of=self._state.row_of
        )
        return self._gather(column.array)

    # What is on it.

    def allocatable(self, resource: str) -> IntArray:
        return self._gather(self._state.allocatable(resource))

    def requested(self, resource: str) -> IntArray:
        """What pods on the node ask for; `pods` counts them."""
        if resource == POD_COUNT:
            return self.pod_count
        asked = self._gather(self._state.requested(resource))
        return self._adjusted(
            asked, lambda placed: placed.footprint.requests.get(resource, 0), resource
        )

    def nonzero_requested(self, resource: str) -> IntArray:
        """cpu or memory asked for, counting kube's default for containers that do not say."""
        asked = self._gather(self._state.nonzero_requested(resource))
        if resource == "cpu":
            return self._adjusted(asked, lambda placed: placed.footprint.nonzero_cpu_milli)
        return self._adjusted(asked, lambda placed: placed.footprint.nonzero_memory_bytes)

    @property
    def pod_count(self) -> IntArray:
        return self._adjusted(self._gather(self._state.pod_count.array), lambda _: 1, POD_COUNT)

    @property
    def lowest_priority(self) -> IntArray:
        """Of the pods on each node; more than any priority where there is none."""
        lowest: IntArray = self._gather(self._state.lowest_priorities.column.array)
        if self._overlays:
            lowest = lowest.copy()
            for position in self._overlays:
                lowest[position] = lowest_priority_of(self._placed(position))
        return lowest

    def pods(self, position: int) -> list[Pod]:
        return [placed.pod for placed in self._placed(position)]

    def pods_matching(self, selection: PodSelection) -> IntArray:
        """How many pods of this selection are on each node."""
        column = self._gather(self._state.pods_matching(selection))
        return self._adjusted(column, lambda placed: selection.counts(placed.pod))

    def imagined_matching(self, selection: PodSelection) -> IntArray | None:
        """How many matching pods each position gains by `with_pods` and loses by `without`,
        terminating ones too; None where neither was said."""
        if not self._overlays:
            return None
        unchanged = np.zeros(len(self), np.int64)
        return self._adjusted(unchanged, lambda placed: selection.matches(placed.pod), selection)

    def terms_about(self, pod: Pod) -> Iterator[CarriedTerm]:
        """Affinity terms of placed pods that may be about this one: ask each whether it is."""
        return self._state.terms_carried.about(pod)

    def pods_carrying(self, carried: CarriedTerm) -> IntArray:
        """How many pods on each node carry this term, apart from what is imagined."""
        capacity = len(self._state.pod_count.array)
        return self._gather(self._state.terms_carried.pods_carrying(carried, capacity))

    def imagined(self) -> Iterator[tuple[int, Pod, int]]:
        """Pods that a position gained by `with_pods` (1) or lost by `without` (-1)."""
        for position, overlay in self._overlays.items():
            present = self._state.placed_on(self._name(position))
            gone = overlay.removed & present.keys()
            yield from ((position, placed.pod, 1) for placed in overlay.added)
            yield from ((position, present[uid].pod, -1) for uid in gone)

    @property
    def volumes(self) -> VolumesOnNodes:
        """Which claims and disks are used, how many volumes are attached."""
        capacity = len(self._state.taint_set.array)
        return VolumesOnNodes(self, self._state.storage, capacity)

    def uses_port(self, wanted: HostPort) -> BoolArray:
        """Where a pod on the node holds a host port that conflicts with this one."""
        used = np.zeros(len(self), np.bool_)
        holders = self._state.port_holders(wanted.protocol, wanted.port)
        if not holders and not self._overlays:
            return used
        if self._rows is None:
            for name, ips in holders.items():
                row = self._state.row_of(name)
                if row is not None:
                    used[row] = any(wanted.conflicts(ip) for ip in ips)
        else:
            for position, name in enumerate(self.names):
                used[position] = any(wanted.conflicts(ip) for ip in holders.get(name, ()))
        for position in self._overlays:
            used[position] = any(
                held.protocol == wanted.protocol
                and held.port == wanted.port
                and wanted.conflicts(held.ip)
                for placed in self._placed(position)
                for held in placed.footprint.host_ports
            )
        return used

    def one(self, position: int) -> OneNode:
        """A single node, for rules that judge one at a time."""
        return OneNode(self, position)

    # What is measured on it.

    def reading(self, source: Hashable) -> Mapping[str, FloatArray]:
        """The columns published under this source; NaN where nothing is known, none before that."""
        ledger = self._state.ledgers.of(source)
        if ledger is None:
            return {}
        columns = {field: self._gather(each.array) for field, each in ledger.columns.items()}
        for position, overlay in self._overlays.items():
            present = self._state.placed_on(self._name(position))
            for placed in overlay.added:
                _add(columns, position, ledger.expected(placed.pod), 1)
            for uid in overlay.removed & present.keys():
                _add(columns, position, ledger.entry(uid), -1)
        return columns

    def expected(self, source: Hashable, pod: Pod) -> Mapping[str, float]:
        """What the pod would add to what is measured under this source, by field."""
        ledger = self._state.ledgers.of(source)
        return {} if ledger is None else ledger.expected(pod)

    # What else there is.

    def objects(self, kind: type[T]) -> Mapping[tuple[str, str], T]:
        """Objects of a type that the rule names in `kinds`, by namespace and name."""
        return self._state.objects(kind)

    def objects_in(self, kind: type[T], namespace: str) -> Mapping[str, T]:
        """Those of one namespace, by name."""
        return self._state.objects_in(kind, namespace)

    # How it is done.

    def _row(self, position: int) -> int:
        return position if self._rows is None else int(self._rows[position])

    def _gather(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self._rows is not None:
            return column[self._rows]
        whole = column[: self._state.count]
        whole.flags.writeable = False  # a rule must not write into what the scheduler believes
        return whole

    def _overlaid(self, overlays: Mapping[int, Overlay]) -> Nodes:
        merged = dict(self._overlays)
        for position, overlay in overlays.items():
            before = merged.get(position, Overlay())
            stay = tuple(p for p in before.added if p.pod.uid not in overlay.removed)
            merged[position] = Overlay(
                added=stay + overlay.added, removed=before.removed | overlay.removed
            )
        return Nodes(self._state, self._rows, merged)

    def _adjusted(self, column: IntArray, amount: Amount, name: Hashable = None) -> IntArray:
        """Columns with a name are asked for often: overlays remember what changes in them."""
        if not self._overlays:
            return column
        column = column.copy()
        for position, overlay in self._overlays.items():
            present = self._state.placed_on(self._name(position))
            column[position] += overlay.change(name, amount, present)
        return column

    def _placed(self, position: int) -> list[PlacedPod]:
        present = self._state.placed_on(self._name(position))
        overlay = self._overlays.get(position)
        if overlay is None:
            return list(present.values())
        stay = [placed for uid, placed in present.items() if uid not in overlay.removed]
        return [*stay, *overlay.added]

    def _name(self, position: int) -> str:
        return self._state.names[self._row(position)]


class OneNode:
    """One row, in plain Python: what a rule lifted by `filter_each` or `score_each` is given."""

    __slots__ = ("_nodes", "_position", "object")

    def __init__(self, nodes: Nodes, position: int) -> None:
        self._nodes = nodes
        self._position = position
        self.object = nodes.node(position)

    @property
    def name(self) -> str:
        return self.object.name

    @property
    def labels(self) -> dict[str, str]:
        return self.object.labels

    @property
    def pods(self) -> list[Pod]:
        return self._nodes.pods(self._position)

    def allocatable(self, resource: str) -> int:
        return int(self._nodes.allocatable(resource)[self._position])

    def requested(self, resource: str) -> int:
        return int(self._nodes.requested(resource)[self._position])

    def reading(self, source: Hashable) -> dict[str, float]:
        columns = self._nodes.reading(source)
        return {field: float(column[self._position]) for field, column in columns.items()}


def _imagined(pod: Pod) -> PlacedPod:
    return PlacedPod(pod, "", footprint_of(pod), is_assumed=True)


def _add(
    columns: dict[str, FloatArray], position: int, amounts: Mapping[str, float], times: int
) -> None:
    for field, amount in amounts.items():
        if not columns[field].flags.writeable:
            columns[field] = columns[field].copy()
        columns[field][position] += times * amount
