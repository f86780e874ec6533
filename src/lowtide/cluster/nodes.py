"""The table that rules read: one row per node, a column per fact.

A Nodes is a face on ClusterState: all rows, some of them (`take`), or rows as they would be with
pods added or removed (`with_pods`, `without`). Rules use positions 0..len-1 of the face they got.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

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
    Totals,
    at_most,
    by_value,
    is_one_of,
)
from lowtide.cluster.ledger import Ledger
from lowtide.cluster.overlay import Amount, Overlays, imagined
from lowtide.cluster.placed import HostPort, PlacedPod
from lowtide.cluster.pods_matching import PodSelection
from lowtide.cluster.priorities import lowest_priority_of
from lowtide.cluster.reading import Amounts
from lowtide.cluster.terms_carried import CarriedTerm
from lowtide.cluster.volumes_on_nodes import VolumesOnNodes
from lowtide.objects.matching import matches_requirement
from lowtide.objects.meta import LabelRequirement
from lowtide.objects.node import Node, Taint
from lowtide.objects.pod import Pod
from lowtide.objects.requests import LARGEST_PLAIN
from lowtide.objects.requests import PODS as POD_COUNT
from lowtide.objects.workloads import Service

if TYPE_CHECKING:
    from lowtide.cluster.state import ClusterState

T = TypeVar("T")


class Nodes:
    __slots__ = (
        "_are_amounts_large",
        "_everything",
        "_feasible",
        "_gone",
        "_is_hypothetical",
        "_overlays",
        "_reach",
        "_rows",
        "_state",
    )

    def __init__(
        self,
        state: ClusterState,
        rows: Rows | None = None,
        overlays: Overlays | None = None,
        *,
        reach: int = 0,
        feasible: BoolArray | None = None,
    ) -> None:
        """`reach` is ANY_ROW where what is read counts as read of the whole table. `feasible` is
        by row."""
        self._state = state
        self._rows = rows
        self._overlays = overlays
        self._reach = reach
        self._feasible = feasible
        self._everything: Nodes | None = None
        self._are_amounts_large: bool | None = None
        self._is_hypothetical = overlays is not None or state.gone is not None
        self._gone: Overlays | None = None
        if state.gone is not None:
            everywhere = state.gone.overlays
            self._gone = everywhere if rows is None else everywhere.take(rows)

    def __len__(self) -> int:
        if self._reach:
            self._state.touched |= NODES
        return self._state.count if self._rows is None else len(self._rows)

    # Which rows.

    @property
    def rows(self) -> Rows:
        """The row of each position in the whole table."""
        if self._reach:
            self._state.touched |= NODES
        return np.arange(self._state.count) if self._rows is None else self._rows

    @property
    def everything(self) -> Nodes:
        """The whole table as it is. An answer about one row that depends on other rows reads them
        here: what is read elsewhere is noted as read of the asked rows alone."""
        if self._reach and self.is_whole:
            return self
        if self._everything is None:
            self._everything = Nodes(self._state, reach=ANY_ROW, feasible=self._feasible)
        return self._everything

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the table, as they are."""
        return self._rows is None and self._overlays is None

    def take(self, positions: Rows) -> Nodes:
        rows = positions if self._rows is None else self._rows[positions]
        overlays = self._overlays
        return self._face(rows, None if overlays is None else overlays.take(positions))

    def with_pods(self, pods: Mapping[int, Sequence[Pod]]) -> Nodes:
        """The table as if each position had these pods too, and no other position changed."""
        return self.with_placed({at: map(imagined, each) for at, each in pods.items()})

    def with_placed(self, pods: Mapping[int, Iterable[PlacedPod]]) -> Nodes:
        """The same, for pods of which it is worked out what they take."""
        return self._face(self._rows, self._thoughts.adding(pods))

    def with_copies(self, placed: PlacedPod, times: IntArray) -> Nodes:
        """Where nothing was imagined yet: the table as if each position had so many such pods."""
        return self._face(self._rows, Overlays.repeating(placed, times))

    def without(self, pods: Mapping[int, Collection[str]]) -> Nodes:
        """The table as if each position had lost the pods with these uids."""
        return self._face(self._rows, self._thoughts.removing(pods, self._really_on))

    def without_lower(self, priority: int) -> tuple[Nodes, list[list[Pod]]]:
        """The table without all pods of a lower priority, and these by position."""
        self.touch(PODS)
        lower = [
            [placed for placed in self._placed(at) if placed.pod.spec.priority < priority]
            for at in range(len(self))
        ]
        pods = [[placed.pod for placed in each] for each in lower]
        if self._overlays is None:
            overlays = self._thoughts.removing_all(dict(enumerate(lower)))
            return self._face(self._rows, overlays), pods
        return self.without({at: [pod.uid for pod in each] for at, each in enumerate(pods)}), pods

    def returning(self, numbers: Rows) -> Nodes:
        """The table as if of all that were taken away these were back: numbers count them in the
        order in which they were told of."""
        return self._face(self._rows, self._thoughts.returning(numbers))

    def overlaid(self, overlays: Overlays) -> Nodes:
        """The table as it is thought of in overlays for these positions."""
        return self._face(self._rows, overlays)

    def with_feasible(self, feasible: BoolArray) -> Nodes:
        """The same, where these rows of the table are what the filters left."""
        return Nodes(self._state, self._rows, self._overlays, reach=self._reach, feasible=feasible)

    # What a node is.

    def node(self, position: int) -> Node:
        self._state.touched |= NODE << self._reach
        return self._state.node_at(self._row(position))

    @property
    def names(self) -> list[str]:
        if self._reach:
            self._state.touched |= NODES
        names = self._state.names
        return names if self._rows is None else [names[row] for row in self._rows]

    def position_of(self, node_name: str) -> int | None:
        """Where this node stands; None where it is not among these."""
        if self._reach:
            self._state.touched |= NODES
        row = self._state.row_of(node_name)
        if row is None or self._rows is None:
            return row
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None

    @property
    def unschedulable(self) -> BoolArray:
        self._state.touched |= NODE << self._reach
        return self._gather(self._state.unschedulable.array)

    def by_taints(self, judge: Callable[[tuple[Taint, ...]], int]) -> IntArray:
        """What `judge` says of each node's taints: asked once per distinct list of them."""
        self._state.touched |= NODE << self._reach
        taints = self._state.taints
        return by_value(
            self._gather(taints.column.array),
            taints.interned.values,
            lambda each: judge(each or ()),
            np.int64,
        )

    def by_features(self, judge: Callable[[frozenset[str]], bool]) -> BoolArray:
        """The same of the features that each node declares."""
        self._state.touched |= NODE << self._reach
        features = self._state.features
        return by_value(
            self._gather(features.column.array),
            features.interned.values,
            lambda each: judge(each or frozenset()),
        )

    def label_matches(self, requirement: LabelRequirement) -> BoolArray:
        """Where a node's label meets the requirement."""
        self._state.touched |= NODE << self._reach
        column = self._state.label_column(requirement.key)
        numbers, interned = self._gather(column.column.array), column.interned
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
        column = self._state.label_column(key)
        return self._gather(column.column.array), column.interned.values

    def label_number_of(self, key: str) -> Callable[[str], int | None]:
        """From a value of this label to its number; None for one that no node of the whole table
        has. What an answer says of a row must not depend on that."""
        self._state.touched |= NODE << self._reach
        return self._state.label_column(key).interned.number_of

    def all_labelled(self, key: str) -> bool:
        """Whether every node has this label. It may be False where only nodes beyond these lack it:
        what an answer says of a row must not depend on that."""
        self._state.touched |= NODE << self._reach
        return self._state.label_column(key).interned.use_count == self._state.count

    def is_named(self, *node_names: str) -> BoolArray:
        """Where one of these nodes stands, which may be at several positions."""
        if self._reach:
            self._state.touched |= NODES
        rows = [row for name in node_names if (row := self._state.row_of(name)) is not None]
        named = np.zeros(self._capacity, np.bool_)
        named[rows] = True
        return self._gather(named)

    def image_node_count(self, image: str) -> int:
        """How many nodes of the whole table hold the image of this full name."""
        self._state.touched |= NODES
        return self._state.images.node_count(image)

    def image_sizes(self, image: str) -> IntArray:
        """How many bytes of it each node holds; 0 where it is not."""
        self._state.touched |= NODE << self._reach
        column = self._state.images.column(
            image, capacity=self._capacity, row_of=self._state.row_of
        )
        return self._gather(column.array)

    @property
    def feasible(self) -> BoolArray:
        """Which nodes the filters left; only score plugins are asked with it."""
        if self._feasible is None:
            raise ValueError("only score and normalize may ask which nodes are feasible")
        self.touch(FEASIBLE)
        if self._reach:  # a node that comes or goes changes it too
            self._state.touched |= NODES
        return self._gather(self._feasible)

    # What is on it.

    def allocatable(self, resource: str) -> IntArray:
        self._state.touched |= NODE << self._reach
        return self._gather(self._state.allocatable(resource))

    def sum_up_to(self, most: IntArray, amounts: IntArray, wanted: int) -> IntArray:
        """What amounts on these nodes come to with what a pod wants, and `most` at the most."""
        if self.are_amounts_large or wanted > LARGEST_PLAIN:
            return at_most(most, amounts, wanted)
        return np.minimum(amounts + wanted, most)

    @property
    def are_amounts_large(self) -> bool:
        """Whether any amount of a node or pod is so large that sums and products need care. Nothing
        else of an answer may depend on that."""
        known = self._are_amounts_large
        if known is None:
            known = self._state.resources.large_count > 0
            if not known and self._overlays is not None:
                known = self._overlays.are_amounts_large
            self._are_amounts_large = known
        return known

    def all_have(self, resource: str) -> bool:
        """Whether every node has some of it to give. It may be False where only nodes beyond these
        have none: what an answer says of a row must not depend on that."""
        self._state.touched |= NODE << self._reach
        return self._state.all_have(resource)

    def requested(self, resource: str) -> IntArray:
        """What pods on the node ask for; `pods` counts them."""
        self._state.touched |= TAKEN << self._reach
        if resource == POD_COUNT:
            return self.pod_count
        return self._total(
            self._state.totals_requested(resource),
            lambda placed: placed.footprint.requests.get(resource, 0),
            resource,
        )

    def nonzero_requested(self, resource: str) -> IntArray:
        """cpu or memory asked for, counting kube's default for containers that do not say."""
        self._state.touched |= TAKEN << self._reach
        totals = self._state.nonzero_requested(resource)
        if resource == "cpu":
            return self._total(
                totals, lambda placed: placed.footprint.nonzero_cpu_milli, "nonzero cpu"
            )
        return self._total(
            totals, lambda placed: placed.footprint.nonzero_memory_bytes, "nonzero memory"
        )

    @property
    def pod_count(self) -> IntArray:
        self._state.touched |= TAKEN << self._reach
        return self._adjusted(self._gather(self._state.pod_count.array), lambda _: 1, POD_COUNT)

    @property
    def lowest_priority(self) -> IntArray:
        """Of the pods on each node; more than any priority where there is none."""
        self._state.touched |= TAKEN << self._reach
        lowest: IntArray = self._gather(self._state.lowest_priorities.column.array)
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
        column = self._gather(self._state.pods_matching(selection))
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
        terms, gone = self._state.terms_carried, self._state.gone
        if gone is None:
            return terms.about(pod)
        uid = gone.placed.pod.uid
        return (each for each in terms.about(pod) if terms.is_carried_by_others(each, uid))

    def pods_carrying(self, carried: CarriedTerm) -> IntArray:
        """How many pods on each node carry this term, apart from what is imagined."""
        self._state.touched |= TERMS << ANY_ROW
        terms = self._state.terms_carried
        pods = self._gather(terms.pods_carrying(carried, self._capacity))
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
        return VolumesOnNodes(
            self, self._state.storage, capacity=self._capacity, gather=self._gather
        )

    def uses_port(self, wanted: HostPort) -> BoolArray:
        """Where a pod on the node holds a host port that conflicts with this one."""
        self._state.touched |= TAKEN << self._reach
        conflicting = self._state.host_ports.conflicting(wanted, self._capacity)

        def held_by(placed: PlacedPod) -> int:
            held = [
                each.ip
                for each in placed.footprint.host_ports
                if (each.protocol, each.port) == (wanted.protocol, wanted.port)
            ]
            return sum(map(wanted.conflicts, held))

        return self._adjusted(self._gather(conflicting), held_by, wanted) > 0

    def one(self, position: int) -> OneNode:
        """A single node, for rules that judge one at a time."""
        return OneNode(self, position)

    # What is measured on it.

    def reading(self, source: Hashable) -> Mapping[str, FloatArray]:
        """The columns published under this source; NaN where nothing is known, none before that."""
        self._state.touched |= READING << self._reach
        ledger = self._state.ledgers.of(source)
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
        ledger = self._state.ledgers.of(source)
        return {} if ledger is None else ledger.expected(pod)

    # What else there is.

    def objects(self, kind: type[T]) -> Mapping[tuple[str, str], T]:
        """Objects of a type that the rule names in `kinds`, by namespace and name."""
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

    # How it is done.

    def touch(self, bits: int) -> None:
        """Notes that these bits of the rows of this face were read."""
        self._state.touched |= bits << self._reach

    def touch_kinds(self, *kinds: type) -> None:
        """Notes that objects of these types were read."""
        for kind in kinds:
            self._state.touched |= self._state.kind_bit(kind)

    def _face(self, rows: Rows | None, overlays: Overlays | None) -> Nodes:
        return Nodes(self._state, rows, overlays, reach=self._reach, feasible=self._feasible)

    def _row(self, position: int) -> int:
        return position if self._rows is None else int(self._rows[position])

    @property
    def _capacity(self) -> int:
        """The length of ClusterState's columns."""
        return len(self._state.pod_count.array)

    def _gather(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self._rows is not None:
            return column[self._rows]
        whole = column[: self._state.count]
        whole.setflags(write=False)  # a rule must not write into what the scheduler believes
        return whole

    @property
    def _thoughts(self) -> Overlays:
        return Overlays.none(len(self)) if self._overlays is None else self._overlays

    def _adjusted(self, column: IntArray, amount: Amount, name: Hashable) -> IntArray:
        """Of a column with this name, overlays remember what each pod adds."""
        if not self._is_hypothetical:
            return column
        if self._gone is not None:
            column = column + self._gone.change(name, amount)
        if self._overlays is not None:
            column = column + self._overlays.change(name, amount)
        return column

    @property
    def _layers(self) -> list[Overlays]:
        return [each for each in (self._gone, self._overlays) if each is not None]

    def _total(self, totals: Totals, amount: Amount, name: Hashable) -> IntArray:
        """The same of amounts, whose sums may be too large for the column."""
        if not self._is_hypothetical:
            return self._gather(totals.array)
        if not self.are_amounts_large:
            return self._adjusted(self._gather(totals.array), amount, name)
        changes = [each.change_of_total(name, amount) for each in self._layers]
        return totals.changed(self.rows, sum(changes[1:], changes[0]))

    def _placed(self, position: int) -> list[PlacedPod]:
        really = self._really_on(position)
        if self._overlays is None:
            return list(really.values())
        return self._overlays.placed(position, really)

    def _really_on(self, position: int) -> Mapping[str, PlacedPod]:
        really = self._state.placed_on(self._state.names[self._row(position)])
        if self._gone is None:
            return really
        return {placed.pod.uid: placed for placed in self._gone.placed(position, really)}


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
