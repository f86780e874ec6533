"""ClusterState: every node, every pod placed on a node, and the indexes that plugins read.

The machine applies watch events here. `assume` and `forget` count pods before they are bound. The
change log tells kept verdicts which rows to evaluate again.
"""

from collections.abc import Hashable, Iterator, Mapping
from copy import copy
from typing import Any, Self, TypeVar

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
from lowtide.cluster.columns import BoolArray, Column, IntArray
from lowtide.cluster.indexes.allocatable import Allocatable
from lowtide.cluster.indexes.attached_volumes import AttachedVolumes
from lowtide.cluster.indexes.existing_terms import ExistingAffinityTerms
from lowtide.cluster.indexes.host_ports import HostPorts
from lowtide.cluster.indexes.images import Images
from lowtide.cluster.indexes.index import Index, handlers
from lowtide.cluster.indexes.labels import LabelColumns
from lowtide.cluster.indexes.ledgers import Ledgers
from lowtide.cluster.indexes.node_columns import NodeColumns
from lowtide.cluster.indexes.nominated_pods import NominatedPods
from lowtide.cluster.indexes.pod_totals import PodTotals
from lowtide.cluster.indexes.pods_matching import PodsMatching
from lowtide.cluster.indexes.service_selectors import ServiceSelectors
from lowtide.cluster.indexes.volumes import MigratedDrivers, VolumesOfClass, VolumeUsers
from lowtide.cluster.known_objects import KnownObjects
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.overlay import Overlays, RemovedPod
from lowtide.cluster.placed import Footprints, PlacedPod
from lowtide.cluster.reading import Reading
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod

T = TypeVar("T")
_I = TypeVar("_I", bound=Index)

# Above this capacity, the table shrinks when nodes leave: an extender request may have filled it.
_USUAL_CAPACITY = 16_384
# If this many rows are removed between two calls of `nodes`, it is cheaper to rebuild columns than
# to update them.
_MANY_ROWS = 64


class ClusterState(Table):
    def __init__(self) -> None:
        super().__init__()
        self.touched = 0  # bits that Nodes has read; whoever records them sets it to 0 first
        self.removed_pod: RemovedPod | None = None  # set by `without`
        self.log = ChangeLog(self.capacity)
        self.known_objects = KnownObjects(self._object_changed)
        self._kind_bits: dict[type, int] = {}
        self._removed_row_count = 0  # since the last call of `nodes`

        self._indexes: list[Index] = []
        self.node_columns = self._register(NodeColumns(self))
        self.labels = self._register(LabelColumns(self))
        self.images = self._register(Images(self))
        self.allocatable_amounts = self._register(Allocatable(self))
        self.pod_totals = self._register(PodTotals(self))
        self.host_ports = self._register(HostPorts(self))
        self.pods_matching = self._register(PodsMatching(self))
        self.existing_terms = self._register(ExistingAffinityTerms(self))
        self.volume_users = self._register(VolumeUsers(self))
        self.volumes_of_class = self._register(VolumesOfClass(self))
        self.migrated_drivers = self._register(MigratedDrivers(self))
        self.attached_volumes = self._register(
            AttachedVolumes(self, self.objects, self.volume_users)
        )
        self.service_selectors = self._register(ServiceSelectors(self))
        self.ledgers = self._register(Ledgers(self, self._reading_changed))
        self.nominated_pods = self._register(NominatedPods(self))

        self._node_added_handlers = handlers(self._indexes, Index.node_added)
        self._node_changed_handlers = handlers(self._indexes, Index.node_changed)
        self._node_removed_handlers = handlers(self._indexes, Index.node_removed)
        self._pod_relabelled_handlers = handlers(self._indexes, Index.pod_relabelled)
        self._object_changed_handlers = handlers(self._indexes, Index.object_changed)
        # Events about a pod go only to the indexes in its footprint.
        self._footprints = Footprints(handlers(self._indexes, Index.pod_added))

    # Queries.

    def nodes(self, feasible: BoolArray | None = None) -> Nodes:
        """The table that plugins read, valid until the state changes. `feasible` marks the rows
        that passed the filters, if that is known."""
        self._removed_row_count = 0
        if self.labels.is_crowded:
            self.labels.make_room()
        return Nodes(self, feasible=feasible)

    def without(self, uid: str) -> Self:
        """This state as if the pod were on no node. The result shares all data with this state: do
        not change it, and do not use it after this state has changed."""
        placed = self.placed(uid)
        if placed is None:
            return self
        other, row = copy(self), self.row_of(placed.node_name)
        pods = {} if row is None else {row: [placed]}
        other.removed_pod = RemovedPod(placed, Overlays.none(self.count).removing_all(pods))
        return other

    def nominated(self) -> Mapping[str, Mapping[str, Pod]]:
        """Pending pods that have a nominated node, by node name and uid."""
        return self.nominated_pods.by_node

    def nomination_of(self, uid: str) -> str:
        """The node that this pending pod is nominated to, or an empty string."""
        return self.nominated_pods.node_name(uid)

    @property
    def pod_count(self) -> Column:
        return self.pod_totals.pod_count

    def allocatable(self, resource: str) -> IntArray:
        return self.allocatable_amounts.amounts[resource].array

    def requested(self, resource: str) -> IntArray:
        return self.pod_totals.total(resource).array

    @property
    def clamped_counts(self) -> dict[str, int]:
        """How many nodes and placed pods have an amount that was clamped or cannot be parsed."""
        pods = sum(placed.footprint.is_clamped for placed in self.all_placed().values())
        return {"node": self.allocatable_amounts.clamped_count, "pod": pods}

    def kind_bit(self, kind: type) -> int:
        """The bit that stands for objects of this type in `touched` and in the change log."""
        bit = self._kind_bits.get(kind)
        if bit is None:
            bit = self._kind_bits[kind] = FIRST_KIND << len(self._kind_bits)
        return bit

    def kinds_of(self, bits: int) -> list[type]:
        """The types of objects that these bits stand for."""
        return [kind for kind, bit in self._kind_bits.items() if bits & bit]

    def objects(self, kind: type[T]) -> Mapping[tuple[str, str], T]:
        """Objects other than nodes and pods, by namespace and name."""
        return self.known_objects.objects_by_key(kind)

    def objects_in(self, kind: type[T], namespace: str) -> Mapping[str, T]:
        """Objects of one namespace, by name."""
        return self.known_objects.objects_in(kind, namespace)

    # Events about nodes.

    def add_node(self, node: Node) -> None:
        if node.name in self.row_by_name:
            self.update_node(node)
            return
        if self.count == self.capacity:
            self._resize(2 * self.capacity)
        row = self._append_node(node)
        for index in self._node_added_handlers:
            index.node_added(row, node)
        self.log.add(row, ROW)

    def update_node(self, node: Node) -> None:
        row = self.row_of(node.name)
        if row is None:
            self.add_node(node)
            return
        before, self.node_objects[row] = self.node_objects[row], node
        if is_same_to_plugins(before, node):
            return
        for index in self._node_changed_handlers:
            index.node_changed(row, before, node)
        self.log.add(row, NODE)

    def remove_node(self, node_name: str) -> None:
        """The last row moves into the gap, so that rows stay contiguous."""
        row = self.row_by_name.pop(node_name, None)
        if row is None:
            return
        self.table_version += 1
        for index in self._node_removed_handlers:
            index.node_removed(row, self.node_objects[row])
        self._removed_row_count += 1
        if self._removed_row_count == _MANY_ROWS:
            self._drop_columns()
        last = self.count - 1
        for column in self._columns():
            if row == last:
                column.clear(last)
            else:
                column.move(last, row)
        self._close_gap(row)
        self.log.row_removed(last)
        self.log.add(row, ROW)
        if self.capacity > max(_USUAL_CAPACITY, 4 * self.count):
            self._resize(self.capacity // 2)

    # Events about pods.

    def place(self, pod: Pod) -> PlacedPod:
        """Apply a bound pod from the API server: a new pod, a change, or a confirmed assumption."""
        footprint = self._footprints.footprint(pod)
        placed = PlacedPod(pod, pod.spec.node_name, footprint, is_assumed=False)
        before = self.placed(pod.uid)
        if before is None:
            self._add_pod(placed)
        elif before.is_same_to_plugins(placed):
            self._put_pod(placed)
        elif before.is_same_except_labels(placed) and not (
            footprint.has_affinity_terms or footprint.has_volumes
        ):
            self._relabel_pod(before, placed)
        else:
            self.remove_pod(pod.uid)
            self._add_pod(placed)
        return placed

    def assume(self, pod: Pod, node_name: str, signature: object = None) -> None:
        """Count the pod on this node before the API server has bound it. `signature` is the pod
        signature of the verdict that chose the node; None if no verdict describes this pod."""
        before = self.placed(pod.uid)
        if before is not None:
            raise ValueError(
                f"cannot assume pod {pod.key} on {node_name}: it is already on {before.node_name}"
            )
        self.nominated_pods.drop(pod.uid)
        footprint = self._footprints.footprint(pod)
        self._add_pod(PlacedPod(pod, node_name, footprint, is_assumed=True), signature)

    def forget(self, uid: str) -> None:
        """Undo `assume`. A pod that was confirmed meanwhile stays."""
        placed = self.placed(uid)
        if placed is not None and placed.is_assumed:
            self.remove_pod(uid)

    def remove_pod(self, uid: str) -> PlacedPod | None:
        placed = self.placed(uid)
        if placed is None:
            return None
        self._drop_pod(placed)
        row, what = self.row_of(placed.node_name), PODS
        try:
            for index in placed.footprint.indexes:
                if not index.is_idle:
                    what |= index.pod_removed(row, placed)
        except BaseException:
            self._log_half_done(row)
            raise
        if row is not None:
            self.log.add(row, what)
        return placed

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.nominated_pods.nominate(pod, node_name)

    def drop_nomination(self, uid: str) -> None:
        self.nominated_pods.drop(uid)

    # Events about other objects.

    def put_object(self, thing: Any) -> bool:
        """Add or replace an object. Returns whether a plugin can see a difference."""
        return self.known_objects.put(thing)

    def remove_object(self, thing: Any) -> None:
        self.known_objects.remove(thing)

    # Readings.

    def publish(self, source: Hashable, reading: Reading) -> None:
        """Replace the reading of this source. Pods that it does not fully measure are counted in
        again."""
        self.ledgers.publish(source, reading)
        self._reading_changed(EVERY_ROW)

    # Internals.

    def _register(self, index: _I) -> _I:
        self._indexes.append(index)
        return index

    def _object_changed(self, before: Any, after: Any, is_visible: bool) -> None:
        bit = self._kind_bits.get(type(before if after is None else after))
        if is_visible and bit is not None:  # without a bit, no plugin has read this kind
            self.log.object_changed(bit)
        for index in self._object_changed_handlers:
            index.object_changed(before, after)

    def _add_pod(self, placed: PlacedPod, signature: object = None) -> None:
        self._put_pod(placed)
        row, what = self.row_of(placed.node_name), PODS
        try:
            for index in placed.footprint.indexes:
                if not index.is_idle:
                    what |= index.pod_added(row, placed)
        except BaseException:
            self._log_half_done(row)
            raise
        if row is not None:
            self.log.pod_arrived(row, what, signature)

    def _relabel_pod(self, before: PlacedPod, after: PlacedPod) -> None:
        """Only the labels changed. The API server copies the node's zone and region labels to a
        pod when it binds it."""
        self._put_pod(after)
        row, what = self.row_of(after.node_name), LABELS
        try:
            for index in self._pod_relabelled_handlers:
                what |= index.pod_relabelled(row, before, after)
        except BaseException:
            self._log_half_done(row)
            raise
        if row is not None:
            self.log.add(row, what)

    def _log_half_done(self, row: int | None) -> None:
        """An index failed at an event about a pod on this row: log whatever may have changed, so
        that no kept verdict is older than the table."""
        if row is not None:
            self.log.add(row, PODS | READING | TERMS)

    def _reading_changed(self, row: int) -> None:
        self.log.add(row, READING)

    def _columns(self) -> Iterator[Column]:
        yield self.log.version_column
        for index in self._indexes:
            yield from index.columns

    def _drop_columns(self) -> None:
        for index in self._indexes:
            index.drop_columns()

    def _resize(self, capacity: int) -> None:
        self.capacity = capacity
        self.log.version_column.resize(capacity)
        for index in self._indexes:
            index.resize()
