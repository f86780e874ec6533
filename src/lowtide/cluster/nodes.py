"""The table that plugins read: one row per node, one column per fact.

A Nodes is a view of ClusterState: all rows, some of them (`take`), or rows with pods hypothetically
added or removed (`with_pods`, `without`). Plugins use positions 0..len-1 of the view they get.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from lowtide.cluster.changes import (
    ANY_ROW,
    FEASIBLE,
    LABELS,
    NODE,
    NODES,
    PODS,
    READING,
    TAKEN,
    TERMS,
)
from lowtide.cluster.columns import (
    BoolArray,
    FloatArray,
    IntArray,
    LazyColumns,
    Rows,
    by_value,
    capped_sum,
    is_one_of,
)
from lowtide.cluster.indexes.existing_terms import CarriedTerm
from lowtide.cluster.indexes.ledger import Ledger
from lowtide.cluster.indexes.pod_totals import lowest_priority_of
from lowtide.cluster.one_node import OneNode
from lowtide.cluster.placed import NONZERO, HostPort, PlacedPod
from lowtide.cluster.pod_selection import PodSelection
from lowtide.cluster.reading import Amounts
from lowtide.cluster.table_view import TableView
from lowtide.cluster.volumes_on_nodes import VolumesOnNodes
from lowtide.objects.matching import matches_requirement
from lowtide.objects.meta import LabelRequirement
from lowtide.objects.node import Node, Taint
from lowtide.objects.pod import Pod
from lowtide.objects.requests import LARGEST_PLAIN
from lowtide.objects.requests import PODS as POD_COUNT
from lowtide.objects.workloads import Service

T = TypeVar("T")


class Nodes(TableView):
    __slots__ = ()

    # Facts of a node.

    def node(self, position: int) -> Node:
        self._state.touched |= NODE << self._touch_shift
        return self._state.node_at(self._row(position))

    @property
    def names(self) -> tuple[str, ...]:
        self._touch_which_rows()
        if self._rows is None:
            return self._state.every_name
        names = self._state.names
        return tuple([names[row] for row in self._rows])

    def position_of(self, node_name: str) -> int | None:
        """The position of this node; None if it is not in this view."""
        self._touch_which_rows()
        row = self._state.row_of(node_name)
        if row is None or self._rows is None:
            return row
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None

    @property
    def unschedulable(self) -> BoolArray:
        self._state.touched |= NODE << self._touch_shift
        return self._gather(self._state.node_columns.unschedulable)

    def by_taints(self, judge: Callable[[tuple[Taint, ...]], int]) -> IntArray:
        """`judge` of each node's taints. It is called once per distinct list."""
        self._state.touched |= NODE << self._touch_shift
        taints = self._state.node_columns.taints
        return by_value(
            self._gather(taints.column),
            taints.interned.values,
            lambda each: judge(each or ()),
            np.int64,
        )

    def by_features(self, judge: Callable[[frozenset[str]], bool]) -> BoolArray:
        """`judge` of each node's declared features. It is called once per distinct set."""
        self._state.touched |= NODE << self._touch_shift
        features = self._state.node_columns.features
        return by_value(
            self._gather(features.column),
            features.interned.values,
            lambda each: judge(each or frozenset()),
        )

    def label_matches(self, requirement: LabelRequirement) -> BoolArray:
        """True where the node's label meets the requirement."""
        self._state.touched |= NODE << self._touch_shift
        column = self._state.labels[requirement.key]
        numbers, interned = self._gather(column.column), column.interned
        match requirement.operator:
            case "In":
                return is_one_of(numbers, interned, requirement.values)
            case "NotIn":
                return ~is_one_of(numbers, interned, requirement.values)
            case "Exists":
                return numbers >= 0
            case "DoesNotExist":
                return numbers < 0
        # Gt and Lt compare each distinct value once.
        return by_value(
            numbers, interned.values, lambda value: matches_requirement(requirement, value)
        )

    def label_numbers(self, key: str) -> tuple[Rows, Sequence[str | None]]:
        """The number of each node's value of this label (-1 without the label), and the values by
        number (None for an unused number). Numbers are valid for one decision only."""
        self._state.touched |= NODE << self._touch_shift
        column = self._state.labels[key]
        return self._gather(column.column), column.interned.values

    def label_number_of(self, key: str) -> Callable[[str], int | None]:
        """A function from a value of this label to its number, or to None if no node of the whole
        table has the value. An answer about a row must not depend on whether it is None."""
        self._state.touched |= NODE << self._touch_shift
        return self._state.labels[key].interned.number_of

    def all_labelled(self, key: str) -> bool:
        """Whether every node of the whole table has this label. Nodes outside this view count too,
        so an answer about a row must not depend on it."""
        self._state.touched |= NODE << self._touch_shift
        return self._state.labels[key].interned.use_count == self._state.count

    def is_named(self, *node_names: str) -> BoolArray:
        """True at the positions of these nodes. A node may have several positions."""
        self._touch_which_rows()
        named = np.zeros(self._state.capacity, np.bool_)
        named[self._state.rows_of(node_names)] = True
        return self._gather_array(named)

    def image_node_count(self, image: str) -> int:
        """How many nodes of the whole table have the image with this full name."""
        self._state.touched |= NODES
        return len(self._state.images.sizes[image])

    def image_sizes(self, image: str) -> IntArray:
        """The size of the image on each node, in bytes; 0 where it is absent."""
        self._state.touched |= NODE << self._touch_shift
        return self._gather(self._state.images.sizes.columns[image])

    @property
    def feasible(self) -> BoolArray:
        """Which nodes passed the filters. Only score plugins can read it."""
        if self._feasible is None:
            raise ValueError("only score and normalize may ask which nodes are feasible")
        self.touch(FEASIBLE)
        self._touch_which_rows()
        feasible = self._gather_array(self._feasible)
        feasible.setflags(write=False)  # the filters keep this array
        return feasible

    # What a node offers, and what is on it.

    def allocatable(self, resource: str) -> IntArray:
        self._state.touched |= NODE << self._touch_shift
        return self._gather(self._state.allocatable_amounts.amounts[resource])

    def sum_up_to(self, most: IntArray, amounts: IntArray, wanted: int) -> IntArray:
        """`amounts + wanted`, capped at `most`, without overflow."""
        if self.are_amounts_large or wanted > LARGEST_PLAIN:
            return capped_sum(most, amounts, wanted)
        return np.minimum(amounts + wanted, most)

    def all_have(self, resource: str) -> bool:
        """Whether every node of the whole table can allocate some of this resource. Nodes outside
        this view count too, so an answer about a row must not depend on it."""
        self._state.touched |= NODE << self._touch_shift
        return self._state.allocatable_amounts.all_have(resource)

    def requested(self, resource: str) -> IntArray:
        """What the pods on each node request. For the resource `pods`, their number."""
        self._state.touched |= TAKEN << self._touch_shift
        if resource == POD_COUNT:
            return self.pod_count
        return self._total(self._state.pod_totals.total(resource), resource)

    def nonzero_requested(self, resource: str) -> IntArray:
        """Requested cpu or memory. A container without a request counts with kube-scheduler's
        default."""
        return self.requested(NONZERO[resource])

    @property
    def pod_count(self) -> IntArray:
        self._state.touched |= TAKEN << self._touch_shift
        pod_count = self._gather(self._state.pod_totals.pod_count)
        return self._adjusted(pod_count, lambda _: 1, POD_COUNT)

    @property
    def lowest_priority(self) -> IntArray:
        """The lowest priority of the pods on each node; without pods, above every priority."""
        self._state.touched |= TAKEN << self._touch_shift
        lowest: IntArray = self._gather(self._state.pod_totals.lowest_priority)
        for overlays in self._layers:
            lowest = lowest.copy()
            for position in overlays.positions:
                lowest[position] = lowest_priority_of(self._placed(position))
        return lowest

    def pods(self, position: int) -> list[Pod]:
        self._state.touched |= PODS << self._touch_shift
        return [placed.pod for placed in self._placed(position)]

    def pods_matching(self, selection: PodSelection) -> IntArray:
        """How many pods of this selection are on each node."""
        self._state.touched |= LABELS << self._touch_shift
        column = self._gather(self._state.pods_matching[selection])
        return self._adjusted(
            column, lambda placed: selection.counts(placed.pod), ("counted", selection)
        )

    def hypothetical_matching(self, selection: PodSelection) -> IntArray | None:
        """How many matching pods each position gains by `with_pods` or loses by `without`,
        terminating pods included. None if this view uses neither."""
        if self._overlays is None:
            return None
        self._state.touched |= LABELS << self._touch_shift
        return self._overlays.change(selection, lambda placed: selection.matches(placed.pod))

    def terms_about(self, pod: Pod) -> Iterator[CarriedTerm]:
        """Affinity terms of placed pods that may match this pod: the caller checks each term."""
        self._state.touched |= TERMS << ANY_ROW
        terms, removed = self._state.existing_terms, self._state.removed_pod
        if removed is None:
            return terms.terms_about(pod)
        uid = removed.placed.pod.uid
        return (each for each in terms.terms_about(pod) if terms.is_carried_by_others(each, uid))

    def pods_carrying(self, carried: CarriedTerm) -> IntArray:
        """How many pods on each node carry this term, before `with_pods` and `without`."""
        self._state.touched |= TERMS << ANY_ROW
        terms = self._state.existing_terms
        pods = self._gather(terms.pods_carrying.columns[carried])
        if self._removal is None:
            return pods
        return pods + self._removal.change(
            carried, lambda placed: terms.times_carried(carried, placed.pod.uid)
        )

    def hypothetical_pods(self) -> Iterator[tuple[int, Pod, int]]:
        """The pods that `with_pods` added and `without` removed, as (position, pod, times). `times`
        is the number of copies, or -1 for a removed pod."""
        if self._overlays is None:
            return iter(())
        self._state.touched |= PODS << self._touch_shift
        return self._overlays.pods()

    def differences(self) -> Iterator[tuple[int, Pod, int]]:
        """`hypothetical_pods`, and the pod that `ClusterState.without` removed. For readers of what
        pods take, such as their volumes: the labels of these pods are not to be read."""
        self.touch(TAKEN)
        if self._removal is not None and self._state.removed_pod is not None:
            pod = self._state.removed_pod.placed.pod
            yield from ((position, pod, -1) for position in self._removal.positions)
        if self._overlays is not None:
            yield from self._overlays.pods()

    @property
    def volumes(self) -> VolumesOnNodes:
        """Which claims and disks are used, and how many volumes are attached."""
        return VolumesOnNodes(self, self._state, gather=self._gather)

    def uses_port(self, wanted: HostPort) -> BoolArray:
        """True where a pod on the node holds a host port that conflicts with this one."""
        self._state.touched |= TAKEN << self._touch_shift
        conflicting = self._state.host_ports.conflicting(wanted)

        def held_by(placed: PlacedPod) -> int:
            held = [
                each.ip
                for each in placed.footprint.host_ports
                if (each.protocol, each.port) == (wanted.protocol, wanted.port)
            ]
            return sum(map(wanted.conflicts, held))

        return self._adjusted(self._gather_array(conflicting), held_by, wanted) > 0

    def one(self, position: int) -> OneNode:
        """A single node, for plugins that evaluate one node at a time."""
        return OneNode(self, position)

    # Readings.

    def reading(self, source: Hashable) -> Mapping[str, FloatArray]:
        """The columns published under this source, NaN where a value is unknown. Empty before the
        first reading is published."""
        self._state.touched |= READING << self._touch_shift
        ledger = self._state.ledgers.ledger(source)
        if ledger is None:
            return {}
        gathered = LazyColumns(ledger.columns, self._gather)
        if not self._layers:
            return gathered
        columns, counted = dict(gathered), _Counted(ledger)
        for number, field in enumerate(ledger.expected_fields):
            for overlays in self._layers:
                change = overlays.change_now(partial(counted.amount, number))
                columns[field] = columns[field] + change
        return columns

    def expected(self, source: Hashable, pod: Pod) -> Mapping[str, float]:
        """What the pod would add to this source's reading of a node, by field."""
        self._state.touched |= READING << self._touch_shift
        ledger = self._state.ledgers.ledger(source)
        return {} if ledger is None else ledger.expected(pod)

    # Other objects.

    def objects(self, kind: type[T]) -> Mapping[tuple[str, str], T]:
        """Objects of a type that the plugin names in `kinds`, by namespace and name."""
        self.touch_kinds(kind)
        return MappingProxyType(self._state.objects(kind))

    def objects_in(self, kind: type[T], namespace: str) -> Mapping[str, T]:
        """Objects of one namespace, by name."""
        self.touch_kinds(kind)
        return MappingProxyType(self._state.objects_in(kind, namespace))

    def selected_by_services(self, pod: Pod) -> dict[str, str]:
        """The combined selectors of the Services that select this pod."""
        self.touch_kinds(Service)
        return self._state.service_selectors.selected_by_services(pod)

    def touch_kinds(self, *kinds: type) -> None:
        """Record that objects of these types were read."""
        for kind in kinds:
            self._state.touched |= self._state.kind_bit(kind)


class _Counted:
    """What a ledger counts for hypothetically added or removed pods."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._of_pods: dict[int, Amounts | None] = {}  # by id(placed)

    def amount(self, number: int, placed: PlacedPod) -> int:
        """The amount of the ledger's field `number`; a whole number."""
        if id(placed) not in self._of_pods:
            is_hypothetical = not placed.node_name
            self._of_pods[id(placed)] = (
                self._ledger.would_count_whole(placed.pod)
                if is_hypothetical
                else self._ledger.counted(placed.pod.uid)
            )
        amounts = self._of_pods[id(placed)]
        return 0 if amounts is None else int(amounts[number])
