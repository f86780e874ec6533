"""ClusterState: every node, every pod on one, and the columns that rules read.

Events are applied here by the machine; `assume` and `forget` count pods that are not bound yet.
A log of changed rows lets kept verdicts see what they have to judge again.
"""

from collections.abc import Hashable, Iterator, Mapping
from copy import copy
from typing import Any, Self, TypeVar

import numpy as np

from lowtide.cluster.affinity_terms import NO_TERMS, read_terms
from lowtide.cluster.change_log import ChangeLog
from lowtide.cluster.changes import (
    EVERY_ROW,
    FIRST_KIND,
    LABELS,
    NODE,
    PODS,
    READING,
    ROW,
    TERMS,
    is_same_to_plugins,
)
from lowtide.cluster.columns import (
    BoolArray,
    Column,
    IntArray,
    MadeWhenAsked,
    Rows,
    Totals,
    ValueColumn,
)
from lowtide.cluster.host_ports import HostPorts
from lowtide.cluster.images import Images
from lowtide.cluster.known_objects import KnownObjects
from lowtide.cluster.labels import LabelColumns
from lowtide.cluster.ledgers import Ledgers
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.nominated import NominatedPods
from lowtide.cluster.overlay import Gone, Overlays
from lowtide.cluster.placed import Footprints, PlacedPod
from lowtide.cluster.pods_matching import PodSelection, PodsMatching
from lowtide.cluster.priorities import LowestPriorities
from lowtide.cluster.reading import Reading
from lowtide.cluster.resources import Resources
from lowtide.cluster.service_selectors import ServiceSelectors
from lowtide.cluster.storage import Storage
from lowtide.cluster.terms_carried import TermsCarried
from lowtide.objects.node import Node, Taint
from lowtide.objects.pod import Pod

T = TypeVar("T")

_FIRST_CAPACITY = 64
# A table that was once larger than this gives room back: its nodes may have been a stranger's.
_USUAL_CAPACITY = 16_384
# When so many rows go between two questions, columns are cheaper made anew than kept true.
_MANY_ROWS = 64
_NO_NODE = Node()


class ClusterState:
    def __init__(self) -> None:
        self.count = 0
        self.table_version = 0  # of which node is at which row
        self.names: list[str] = []
        self.gone: Gone | None = None  # set by `without`
        self._nodes: list[Node] = []
        self._row_of: dict[str, int] = {}
        self._capacity = _FIRST_CAPACITY

        self._footprints = Footprints()
        self._placed: dict[str, PlacedPod] = {}  # by uid
        self._placed_on: dict[str, dict[str, PlacedPod]] = {}  # by node name, known or not
        self._nominated: dict[str, dict[str, Pod]] = {}  # by node name, then uid
        self._nomination_of: dict[str, str] = {}  # the same: node names by uid
        self.nominated_pods = NominatedPods()

        self.unschedulable = Column(np.bool_, False, _FIRST_CAPACITY)
        self._number_values()
        self.pod_count = Column(np.int64, 0, _FIRST_CAPACITY)
        self.lowest_priorities = LowestPriorities(_FIRST_CAPACITY)
        self.resources = Resources(_FIRST_CAPACITY)
        self._labels = LabelColumns()
        self.images = Images()
        self.host_ports = HostPorts(self._row_of)
        self._pods_matching = PodsMatching()
        self.terms_carried = TermsCarried(self._row_of)
        self.storage = Storage(self.objects, row_of=self._row_of, pods_on=self.placed_on)
        self._made_when_asked: tuple[MadeWhenAsked, ...] = (
            self._labels,
            self.resources,
            self.images,
            self.host_ports,
            self._pods_matching,
            self.terms_carried,
            self.storage.migrated,
            self.storage.attached.nodes_using,
        )
        self.ledgers = Ledgers(self._row_of, lambda row: self._changed(row, READING))

        self.touched = 0  # what Nodes was asked for, since somebody set it to 0
        self._kind_bits: dict[type, int] = {}

        self.service_selectors = ServiceSelectors()
        self.known_objects = KnownObjects(self._object_changed)

        self._every_row: Rows = np.empty(0, np.intp)
        self.log = ChangeLog(_FIRST_CAPACITY)
        self._rows_gone = 0  # since the last question

    # Reading it.

    @property
    def every_row(self) -> Rows:
        """The same array until nodes come or go."""
        if len(self._every_row) != self.count:
            self._every_row = np.arange(self.count)
        return self._every_row

    def nodes(self, feasible: BoolArray | None = None) -> Nodes:
        """For a question, which ends before anything changes here. `feasible` are the rows that the
        filters left, where that is known."""
        self._rows_gone = 0
        self._labels.make_room(self._capacity)
        return Nodes(self, feasible=feasible)

    def without(self, uid: str) -> Self:
        """The same as if this pod was on no node, for a question: it shares everything with this
        one, and must not be changed, nor used after this one has changed."""
        placed = self._placed.get(uid)
        if placed is None:
            return self
        other, row = copy(self), self._row_of.get(placed.node_name)
        pods = {} if row is None else {row: [placed]}
        other.gone = Gone(placed, Overlays.none(self.count).removing_all(pods))
        return other

    def node_at(self, row: int) -> Node:
        return self._nodes[row]

    def row_of(self, node_name: str) -> int | None:
        return self._row_of.get(node_name)

    def placed_on(self, node_name: str) -> Mapping[str, PlacedPod]:
        return self._placed_on.get(node_name, {})

    def placed(self, uid: str) -> PlacedPod | None:
        return self._placed.get(uid)

    def placed_pods(self) -> Iterator[Pod]:
        return (placed.pod for placed in self._placed.values())

    @property
    def placed_count(self) -> int:
        return len(self._placed)

    @property
    def assumed_count(self) -> int:
        return sum(placed.is_assumed for placed in self._placed.values())

    def nominated(self) -> Mapping[str, Mapping[str, Pod]]:
        """Pending pods that are promised a node, by node name and uid."""
        return self._nominated

    def nomination_of(self, uid: str) -> str:
        """The node that this pending pod is promised; empty where there is none."""
        return self._nomination_of.get(uid, "")

    def allocatable(self, resource: str) -> IntArray:
        return self.resources.allocatable(resource, self._capacity).array

    def all_have(self, resource: str) -> bool:
        """Whether every node has some of it to give."""
        return self.resources.all_have(resource)

    def requested(self, resource: str) -> IntArray:
        return self.totals_requested(resource).array

    def totals_requested(self, resource: str) -> Totals:
        return self.resources.requested(
            resource, capacity=self._capacity, row_of=self._row_of, placed=self._placed.values()
        )

    def nonzero_requested(self, resource: str) -> Totals:
        return self.resources.nonzero[resource]

    @property
    def clamped_counts(self) -> dict[str, int]:
        """How many nodes, and pods on nodes, have an amount that does not count as it is
        written."""
        pods = sum(placed.footprint.is_clamped for placed in self._placed.values())
        return {"node": self.resources.clamped_node_count, "pod": pods}

    def label_column(self, key: str) -> ValueColumn[str]:
        return self._labels.column(key, capacity=self._capacity, nodes=self._nodes)

    def pods_matching(self, selection: PodSelection) -> IntArray:
        """How many such pods are on each row."""
        return self._pods_matching.column(
            selection, capacity=self._capacity, row_of=self._row_of, placed=self._placed
        ).array

    def kind_bit(self, kind: type) -> int:
        """The bit that stands for objects of this type, in `touched` and in the log."""
        bit = self._kind_bits.get(kind)
        if bit is None:
            bit = self._kind_bits[kind] = FIRST_KIND << len(self._kind_bits)
        return bit

    def kinds_of(self, bits: int) -> list[type]:
        """The types of objects that these bits stand for."""
        return [kind for kind, bit in self._kind_bits.items() if bits & bit]

    def objects(self, kind: type[T]) -> Mapping[tuple[str, str], T]:
        """Objects other than nodes and pods, by namespace and name."""
        return self.known_objects.of(kind)

    def objects_in(self, kind: type[T], namespace: str) -> Mapping[str, T]:
        """Those of one namespace, by name."""
        return self.known_objects.inside(kind, namespace)

    # Nodes come, change and go.

    def add_node(self, node: Node) -> None:
        if node.name in self._row_of:
            self.update_node(node)
            return
        row = self.count
        if row == self._capacity:
            self._resize(2 * self._capacity)
        self.count += 1
        self.names.append(node.name)
        self._nodes.append(node)
        self._row_of[node.name] = row
        self.table_version += 1
        self.resources.append(node)
        self._fill_node_columns(row, _NO_NODE, node)
        pods = self.placed_on(node.name).values()
        for placed in pods:
            self._count_in(row, placed, times=1)
            self.lowest_priorities.came(row, placed)
        self.host_ports.fill(row, pods)
        self._pods_matching.fill(row, pods)
        self.terms_carried.fill(row, pods)
        self.storage.node_came(row, node.name)
        self.ledgers.fill(row, node.name, pods)
        self._changed(row, ROW)

    def update_node(self, node: Node) -> None:
        row = self._row_of.get(node.name)
        if row is None:
            self.add_node(node)
            return
        before, self._nodes[row] = self._nodes[row], node
        if is_same_to_plugins(before, node):
            return
        if before.status.allocatable != node.status.allocatable:
            self.resources.replace(row, node)
        self._fill_node_columns(row, before, node)
        self._changed(row, NODE)

    def remove_node(self, node_name: str) -> None:
        """The last row moves into the gap, so that the table stays without holes."""
        row = self._row_of.pop(node_name, None)
        if row is None:
            return
        self.table_version += 1
        for uid in self._nominated.pop(node_name, {}):
            del self._nomination_of[uid]
        self.taints.set(row, None)
        self.features.set(row, None)
        self._labels.replace(row, self._nodes[row].labels, {})
        self.resources.remove(row)
        self.images.remove(node_name, self._nodes[row].status.images)
        self.storage.node_went(node_name)
        self._rows_gone += 1
        if self._rows_gone == _MANY_ROWS:
            self._let_columns_go()
        last = self.count - 1
        if row != last:
            for column in self._columns():
                column.move(last, row)
            self.names[row], self._nodes[row] = self.names[last], self._nodes[last]
            self._row_of[self.names[row]] = row
        else:
            for column in self._columns():
                column.clear(last)
        self.log.row_is_gone(last)
        self.names.pop()
        self._nodes.pop()
        self.count -= 1
        self._changed(row, ROW)
        if self._capacity > max(_USUAL_CAPACITY, 4 * self.count):
            self._resize(self._capacity // 2)

    # Pods come, change and go.

    def place(self, pod: Pod) -> PlacedPod:
        """A bound pod as the API server has it: added, changed, or an assumption confirmed."""
        placed = PlacedPod(pod, pod.spec.node_name, self._footprints.of(pod), is_assumed=False)
        self._put(placed)
        return placed

    def assume(self, pod: Pod, node_name: str, shape: object = None) -> None:
        """Counts the pod on that node from now on, before the API server has bound it. `shape` is
        what a verdict knows its pods by; None where it was not asked about just this pod."""
        uid = pod.uid
        if uid in self._placed:
            raise ValueError(f"pod {pod.key} is on {self._placed[uid].node_name} already")
        self.drop_nomination(uid)
        placed = PlacedPod(pod, node_name, self._footprints.of(pod), is_assumed=True)
        self._put(placed, shape)

    def forget(self, uid: str) -> None:
        """Takes an assumption back; a pod that was confirmed meanwhile stays."""
        placed = self._placed.get(uid)
        if placed is not None and placed.is_assumed:
            self.remove_pod(uid)

    def remove_pod(self, uid: str) -> PlacedPod | None:
        placed = self._placed.pop(uid, None)
        if placed is None:
            return None
        on_node = self._placed_on[placed.node_name]
        del on_node[uid]
        if not on_node:
            del self._placed_on[placed.node_name]
        self.host_ports.count(placed, times=-1)
        self.resources.went(placed.footprint)
        row = self._row_of.get(placed.node_name)
        self._pods_matching.count(row, placed, times=-1)
        what = PODS | TERMS if self.terms_carried.count_out(placed) else PODS
        self.storage.count_out(placed)
        if self.ledgers.count_out(row, uid):
            what |= READING
        if row is not None:
            self._count_in(row, placed, times=-1)
            self.lowest_priorities.went(row, placed, on_node.values())
            self._changed(row, what)
        return placed

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.drop_nomination(pod.uid)
        self._nominated.setdefault(node_name, {})[pod.uid] = pod
        self._nomination_of[pod.uid] = node_name

    def drop_nomination(self, uid: str) -> None:
        node_name = self._nomination_of.pop(uid, None)
        if node_name is not None:
            del self._nominated[node_name][uid]
            if not self._nominated[node_name]:
                del self._nominated[node_name]

    # Other objects come, change and go.

    def put_object(self, thing: Any) -> bool:
        """Whether a rule can tell it from what was there before."""
        return self.known_objects.put(thing)

    def remove_object(self, thing: Any) -> None:
        self.known_objects.remove(thing)

    # Readings are published.

    def publish(self, source: Hashable, reading: Reading) -> None:
        """Replaces what is measured under this source, and counts anew what is still to come."""
        self.ledgers.publish(source, reading, self.names, self._capacity, self._placed)
        self._changed(EVERY_ROW, READING)

    # How it is done.

    def _object_changed(self, before: Any, after: Any, is_other: bool) -> None:
        bit = self._kind_bits.get(type(before if after is None else after))
        if is_other and bit is not None:  # else no plugin has read this kind
            self.log.object_changed(bit)
        self.storage.object_changed(before, after)
        self.service_selectors.object_changed(before, after)

    def _put(self, placed: PlacedPod, shape: object = None) -> None:
        uid = placed.pod.uid
        before = self._placed.get(uid)
        if before is not None and before.looks_like(placed):
            self._placed[uid] = self._placed_on[placed.node_name][uid] = placed
            return
        if before is not None and before.takes_like(placed) and _goes_by_its_requests(placed.pod):
            self._relabel(before, placed)
            return
        if before is not None:
            self.remove_pod(uid)
        self._placed[uid] = placed
        self._placed_on.setdefault(placed.node_name, {})[uid] = placed
        self.host_ports.count(placed, times=1)
        self.resources.came(placed.footprint)
        row = self._row_of.get(placed.node_name)
        self._pods_matching.count(row, placed, times=1)
        what = PODS | TERMS if self.terms_carried.count_in(placed) else PODS
        self.storage.count_in(placed)
        if self.ledgers.count_in(row, placed.pod):
            what |= READING
        if row is not None:
            self._count_in(row, placed, times=1)
            self.lowest_priorities.came(row, placed)
            self.log.pod_came(row, what, shape)

    def _relabel(self, before: PlacedPod, after: PlacedPod) -> None:
        """As the API server does when it binds a pod, by its node's zone and region."""
        uid = after.pod.uid
        self._placed[uid] = self._placed_on[after.node_name][uid] = after
        row = self._row_of.get(after.node_name)
        self._pods_matching.count(row, before, times=-1)
        self._pods_matching.count(row, after, times=1)
        what = LABELS | READING if self.ledgers.count_again(row, after.pod) else LABELS
        if row is not None:
            self._changed(row, what)

    def _count_in(self, row: int, placed: PlacedPod, times: int) -> None:
        self.pod_count.array[row] += times
        self.resources.count(row, placed.footprint, times)

    def _fill_node_columns(self, row: int, before: Node, node: Node) -> None:
        self.unschedulable.array[row] = node.spec.unschedulable
        self.taints.set(row, tuple(node.spec.taints))
        self.features.set(row, frozenset(node.status.declared_features))
        self._labels.replace(row, before.labels, node.labels)
        self.images.replace(row, node.name, before.status.images, node.status.images)

    def _number_values(self) -> None:
        """From 0 on: of a table that was larger, many numbers may be free."""
        self.taints: ValueColumn[tuple[Taint, ...]] = ValueColumn(self._capacity)
        self.taints.fill(tuple(node.spec.taints) for node in self._nodes)
        self.features: ValueColumn[frozenset[str]] = ValueColumn(self._capacity)
        self.features.fill(frozenset(node.status.declared_features) for node in self._nodes)

    def _columns(self) -> Iterator[Column]:
        yield from self._columns_that_stay()
        for kind in self._made_when_asked:
            yield from kind.columns

    def _columns_that_stay(self) -> Iterator[Column]:
        yield from (self.unschedulable, self.taints.column, self.features.column, self.pod_count)
        yield self.log.version_column
        yield self.lowest_priorities.column
        yield from self.resources.nonzero.values()
        yield from self.storage.attached.columns
        yield from self.ledgers.columns

    def _let_columns_go(self) -> None:
        for kind in self._made_when_asked:
            kind.let_columns_go()

    def _resize(self, capacity: int) -> None:
        self._capacity = capacity
        self._let_columns_go()
        for column in self._columns_that_stay():
            column.resize(capacity)
        self._number_values()

    def _changed(self, row: int, what: int) -> None:
        self.log.add(row, what)


def _goes_by_its_requests(pod: Pod) -> bool:
    """Whether nothing else is kept of it that may depend on its labels, or holds the pod."""
    return read_terms(pod) is NO_TERMS and not pod.spec.volumes
