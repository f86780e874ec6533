"""The table that plugins read: one row per node, a column per fact.

A Nodes is a face on ClusterState: all rows, some of them (`take`), or rows as they would be with
pods added or removed (`with_pods`, `without`). Plugins use positions 0..len-1 of the face they got.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
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
    Gathered,
    IntArray,
    Rows,
    at_most,
    by_value,
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

    # What a node is.

    def node(self, position: int) -> Node:
        self._state.touched |= NODE << self._reach
        return self._state.node_at(self._row(position))

    @property
    def names(self) -> list[str]:
        self._touch_which_rows()
        names = self._state.names
        return names if self._rows is None else [names[row] for row in self._rows]

    def position_of(self, node_name: str) -> int | None:
        """Where this node stands; None where it is not among these."""
        self._touch_which_rows()
        row = self._state.row_of(node_name)
        if row is None or self._rows is None:
            return row
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None

    @property
    def unschedulable(self) -> BoolArray:
        self._state.touched |= NODE << self._reach
        return self._gather(self._state.node_columns.unschedulable)

    def by_taints(self, judge: Callable[[tuple[Taint, ...]], int]) -> IntArray:
        """What `judge` says of each node's taints: asked once per distinct list of them."""
        self._state.touched |= NODE << self._reach
        taints = self._state.node_columns.taints
        return by_value(
            self._gather(taints.column),
            taints.interned.values,
            lambda each: judge(each or ()),
            np.int64,
        )

    def by_features(self, judge: Callable[[frozenset[str]], bool]) -> BoolArray:
        """The same of the features that each node declares."""
        self._state.touched |= NODE << self._reach
        features = self._state.node_columns.features
        return by_value(
            self._gather(features.column),
            features.interned.values,
            lambda each: judge(each or frozenset()),
        )

    def label_matches(self, requirement: LabelRequirement) -> BoolArray:
        """Where a node's label meets the requirement."""
        self._state.touched |= NODE << self._reach
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
        # Gt and Lt have to look at every value, once.
        return by_value(
            numbers, interned.values, lambda value: matches_requirement(requirement, value)
        )

    def label_numbers(self, key: str) -> tuple[Rows, Sequence[str | None]]:
        """The number of each node's value of this label, below 0 without it; values by number,
        None for one that no node has. Numbers hold for one question."""
        self._state.touched |= NODE << self._reach
        column = self._state.labels[key]
        return self._gather(column.column), column.interned.values

    def label_number_of(self, key: str) -> Callable[[str], int | None]:
        """From a value of this label to its number; None for one that no node of the whole table
        has. What an answer says of a row must not depend on that."""
        self._state.touched |= NODE << self._reach
        return self._state.labels[key].interned.number_of

    def all_labelled(self, key: str) -> bool:
        """Whether every node has this label. It may be False where only nodes beyond these lack it:
        what an answer says of a row must not depend on that."""
        self._state.touched |= NODE << self._reach
        return self._state.labels[key].interned.use_count == self._state.count

    def is_named(self, *node_names: str) -> BoolArray:
        """Where one of these nodes stands, which may be at several positions."""
        self._touch_which_rows()
        named = np.zeros(self._state.capacity, np.bool_)
        named[self._state.rows_of(node_names)] = True
        return self._gather_array(named)

    def image_node_count(self, image: str) -> int:
        """How many nodes of the whole table hold the image of this full name."""
        self._state.touched |= NODES
        return len(self._state.images.sizes[image])

    def image_sizes(self, image: str) -> IntArray:
        """How many bytes of it each node holds; 0 where it is not."""
        self._state.touched |= NODE << self._reach
        return self._gather(self._state.images.sizes.columns[image])

    @property
    def feasible(self) -> BoolArray:
        """Which nodes the filters left; only score plugins are asked with it."""
        if self._feasible is None:
            raise ValueError("only score and normalize may ask which nodes are feasible")
        self.touch(FEASIBLE)
        self._touch_which_rows()
        return self._gather_array(self._feasible)

    # What is on it.

    def allocatable(self, resource: str) -> IntArray:
        self._state.touched |= NODE << self._reach
        return self._gather(self._state.allocatable_amounts.amounts[resource])

    def sum_up_to(self, most: IntArray, amounts: IntArray, wanted: int) -> IntArray:
        """What amounts on these nodes come to with what a pod wants, and `most` at the most."""
        if self.are_amounts_large or wanted > LARGEST_PLAIN:
            return at_most(most, amounts, wanted)
        return np.minimum(amounts + wanted, most)

    def all_have(self, resource: str) -> bool:
        """Whether every node has some of it to give. It may be False where only nodes beyond these
        have none: what an answer says of a row must not depend on that."""
        self._state.touched |= NODE << self._reach
        return self._state.allocatable_amounts.all_have(resource)

    def requested(self, resource: str) -> IntArray:
        """What pods on the node ask for; `pods` counts them."""
        self._state.touched |= TAKEN << self._reach
        if resource == POD_COUNT:
            return self.pod_count
        return self._total(self._state.pod_totals.total(resource), resource)

    def nonzero_requested(self, resource: str) -> IntArray:
        """cpu or memory asked for, counting kube's default for containers that do not say."""
        return self.requested(NONZERO[resource])

    @property
    def pod_count(self) -> IntArray:
        self._state.touched |= TAKEN << self._reach
        pod_count = self._gather(self._state.pod_totals.pod_count)
        return self._adjusted(pod_count, lambda _: 1, POD_COUNT)

    @property
    def lowest_priority(self) -> IntArray:
        """Of the pods on each node; more than any priority where there is none."""
        self._state.touched |= TAKEN << self._reach
        lowest: IntArray = self._gather(self._state.pod_totals.lowest_priority)
        for overlays in self._layers:
            lowest = lowest.copy()
            for position in overlays.positions:
                lowest[position] = lowest_priority_of(self._placed(position))
        return lowest

    def pods(self, position: int) -> list[Pod]:
        self._state.touched |= PODS << self._reach
        return [placed.pod for placed in self._placed(position)]

    def pods_matching(self, selection: PodSelection) -> IntArray:
        """How many pods of this selection are on each node."""
        self._state.touched |= LABELS << self._reach
        column = self._gather(self._state.pods_matching[selection])
        return self._adjusted(
            column, lambda placed: selection.counts(placed.pod), ("counted", selection)
        )

    def imagined_matching(self, selection: PodSelection) -> IntArray | None:
        """How many matching pods each position gains by `with_pods` and loses by `without`,
        terminating ones too; None where neither was said."""
        if self._overlays is None:
            return None
        self._state.touched |= LABELS << self._reach
        return self._overlays.change(selection, lambda placed: selection.matches(placed.pod))

    def terms_about(self, pod: Pod) -> Iterator[CarriedTerm]:
        """Affinity terms of placed pods that may be about this one: ask each whether it is."""
        self._state.touched |= TERMS << ANY_ROW
        terms, gone = self._state.existing_terms, self._state.gone
        if gone is None:
            return terms.about(pod)
        uid = gone.placed.pod.uid
        return (each for each in terms.about(pod) if terms.is_carried_by_others(each, uid))

    def pods_carrying(self, carried: CarriedTerm) -> IntArray:
        """How many pods on each node carry this term, apart from what is imagined."""
        self._state.touched |= TERMS << ANY_ROW
        terms = self._state.existing_terms
        pods = self._gather(terms.pods_carrying.columns[carried])
        if self._gone is None:
            return pods
        return pods + self._gone.change(
            carried, lambda placed: terms.times_carried(carried, placed.pod.uid)
        )

    def imagined(self) -> Iterator[tuple[int, Pod, int]]:
        """Pods that a position gained by `with_pods` (1, or more of a kind) or lost by `without`
        (-1)."""
        if self._overlays is None:
            return iter(())
        self._state.touched |= PODS << self._reach
        return self._overlays.pods()

    def differences(self) -> Iterator[tuple[int, Pod, int]]:
        """The same, and the pod that is gone from `ClusterState.without`."""
        if self._gone is not None and self._state.gone is not None:
            pod = self._state.gone.placed.pod
            yield from ((position, pod, -1) for position in self._gone.positions)
        yield from self.imagined()

    @property
    def volumes(self) -> VolumesOnNodes:
        """Which claims and disks are used, how many volumes are attached."""
        return VolumesOnNodes(self, self._state, gather=self._gather)

    def uses_port(self, wanted: HostPort) -> BoolArray:
        """Where a pod on the node holds a host port that conflicts with this one."""
        self._state.touched |= TAKEN << self._reach
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
        """A single node, for plugins that judge one at a time."""
        return OneNode(self, position)

    # What is measured on it.

    def reading(self, source: Hashable) -> Mapping[str, FloatArray]:
        """The columns published under this source; NaN where nothing is known, none before that."""
        self._state.touched |= READING << self._reach
        ledger = self._state.ledgers.ledger(source)
        if ledger is None:
            return {}
        gathered = Gathered(ledger.columns, self._gather)
        if not self._layers:
            return gathered
        columns, counted = dict(gathered), _Counted(ledger)
        for number, field in enumerate(ledger.expected_fields):
            for overlays in self._layers:
                change = overlays.change_now(partial(counted.amount, number))
                columns[field] = columns[field] + change
        return columns

    def expected(self, source: Hashable, pod: Pod) -> Mapping[str, float]:
        """What the pod would add to what is measured under this source, by field."""
        self._state.touched |= READING << self._reach
        ledger = self._state.ledgers.ledger(source)
        return {} if ledger is None else ledger.expected(pod)

    # What else there is.

    def objects(self, kind: type[T]) -> Mapping[tuple[str, str], T]:
        """Objects of a type that the plugin names in `kinds`, by namespace and name."""
        self.touch_kinds(kind)
        return self._state.objects(kind)

    def objects_in(self, kind: type[T], namespace: str) -> Mapping[str, T]:
        """Those of one namespace, by name."""
        self.touch_kinds(kind)
        return self._state.objects_in(kind, namespace)

    def selected_by_services(self, pod: Pod) -> dict[str, str]:
        """All labels that the Services which select this pod ask for."""
        self.touch_kinds(Service)
        return self._state.service_selectors.about(pod)

    def touch_kinds(self, *kinds: type) -> None:
        """Notes that objects of these types were read."""
        for kind in kinds:
            self._state.touched |= self._state.kind_bit(kind)


class _Counted:
    """What a ledger counts for pods that are thought to come, or to go."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._of_pods: dict[int, Amounts | None] = {}  # by the id of what is imagined

    def amount(self, number: int, placed: PlacedPod) -> int:
        """Of the field of this number: a whole number."""
        if id(placed) not in self._of_pods:
            is_imagined = not placed.node_name
            self._of_pods[id(placed)] = (
                self._ledger.would_count_whole(placed.pod)
                if is_imagined
                else self._ledger.counted(placed.pod.uid)
            )
        amounts = self._of_pods[id(placed)]
        return 0 if amounts is None else int(amounts[number])
