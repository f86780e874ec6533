"""ClusterState: every node, every pod on one, and the columns that rules read.

Events are applied here by the machine; `assume` and `forget` count pods that are not bound yet.
A log of changed rows lets kept verdicts see what they have to judge again.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from lowtide.cluster.changes import EVERY_ROW, NODE, PODS, READING, ROW
from lowtide.cluster.columns import Column, IntArray, Interned, LabelColumn
from lowtide.cluster.images import Images
from lowtide.cluster.known_objects import KnownObjects
from lowtide.cluster.ledger import Ledger
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.placed import PlacedPod, footprint_of
from lowtide.cluster.pods_matching import PodSelection, PodsMatching
from lowtide.cluster.priorities import LowestPriorities
from lowtide.cluster.reading import Reading
from lowtide.cluster.storage import Storage
from lowtide.cluster.terms_carried import TermsCarried
from lowtide.objects.node import Node, Taint
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.objects.requests import CPU, MEMORY, amounts_as_int

T = TypeVar("T")

_FIRST_CAPACITY = 64
_LONGEST_LOG = 200_000


class ClusterState:
    def __init__(self) -> None:
        self.count = 0
        self.names: list[str] = []
        self._nodes: list[Node] = []
        self._row_of: dict[str, int] = {}
        self._capacity = _FIRST_CAPACITY

        self._placed: dict[str, PlacedPod] = {}  # by uid
        self._placed_on: dict[str, dict[str, PlacedPod]] = {}  # by node name, known or not
        self._nominated: dict[str, dict[str, Pod]] = {}  # by node name, then uid
        self._nomination_of: dict[str, str] = {}  # the same: node names by uid

        self.unschedulable = Column(np.bool_, False, _FIRST_CAPACITY)
        self.taint_set = Column(np.int32, 0, _FIRST_CAPACITY)
        self.taint_sets: Interned[tuple[Taint, ...]] = Interned()
        self.pod_count = Column(np.int64, 0, _FIRST_CAPACITY)
        self.lowest_priorities = LowestPriorities(_FIRST_CAPACITY)
        self._allocatable: dict[str, Column] = {}
        self._requested: dict[str, Column] = {}
        self._nonzero = {name: Column(np.int64, 0, _FIRST_CAPACITY) for name in (CPU, MEMORY)}
        self._labels: dict[str, LabelColumn] = {}
        self.images = Images()
        self._ports: dict[tuple[str, int], dict[str, Counter[str]]] = {}
        self._pods_matching = PodsMatching()
        self.terms_carried = TermsCarried(self._row_of)
        self._ledgers: dict[Hashable, Ledger] = {}  # by source

        self.storage = Storage(self.objects, row_of=self._row_of, pods_on=self.placed_on)
        self.known_objects = KnownObjects(self.storage.object_changed)

        self._log: list[tuple[int, int]] = []
        self._log_starts_at = 0

    # Reading it.

    def nodes(self) -> Nodes:
        return Nodes(self)

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
        return self._resource_column(self._allocatable, resource).array

    def requested(self, resource: str) -> IntArray:
        return self._resource_column(self._requested, resource).array

    def nonzero_requested(self, resource: str) -> IntArray:
        return self._nonzero[resource].array

    def label_column(self, key: str) -> LabelColumn:
        """Made at first use, kept true from then on."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self._capacity)
            for row, node in enumerate(self._nodes):
                column.set(row, node.labels.get(key))
        return column

    def pods_matching(self, selection: PodSelection) -> IntArray:
        """How many such pods are on each row."""
        return self._pods_matching.column(
            selection, capacity=self._capacity, row_of=self._row_of, placed=self._placed
        ).array

    def port_holders(self, protocol: str, port: int) -> Mapping[str, Counter[str]]:
        """By node name: how many pods hold this port on which address."""
        return self._ports.get((protocol, port), {})

    def ledger(self, source: Hashable) -> Ledger | None:
        """What is measured under this source; None before it was."""
        return self._ledgers.get(source)

    def objects(self, kind: type[T]) -> Mapping[tuple[str, str], T]:
        """Objects other than nodes and pods, by namespace and name."""
        return self.known_objects.of(kind)

    def objects_in(self, kind: type[T], namespace: str) -> Mapping[str, T]:
        """Those of one namespace, by name."""
        return self.known_objects.inside(kind, namespace)

    # Which rows changed.

    @property
    def position(self) -> int:
        """Where the log of changes ends now."""
        return self._log_starts_at + len(self._log)

    def changes_since(self, position: int) -> list[tuple[int, int]] | None:
        """(row or EVERY_ROW, what) in order; None when that is too long ago to tell."""
        if position < self._log_starts_at:
            return None
        return self._log[position - self._log_starts_at :]

    # Nodes come, change and go.

    def add_node(self, node: Node) -> None:
        if node.name in self._row_of:
            self.update_node(node)
            return
        row = self.count
        if row == self._capacity:
            self._grow()
        self.count += 1
        self.names.append(node.name)
        self._nodes.append(node)
        self._row_of[node.name] = row
        self._fill_node_columns(row, node)
        self.images.replace(row, node.name, (), node.status.images)
        for placed in self.placed_on(node.name).values():
            self._count_in(row, placed, times=1)
            self.lowest_priorities.came(row, placed)
        self._pods_matching.fill(row, self.placed_on(node.name).values())
        self.terms_carried.fill(row, node.name)
        self.storage.attached.node_changed(node.name)
        for ledger in self._ledgers.values():
            ledger.fill(row, node.name)
            ledger.count_in(row, self.placed_on(node.name).values())
        self._changed(row, ROW)

    def update_node(self, node: Node) -> None:
        row = self._row_of.get(node.name)
        if row is None:
            self.add_node(node)
            return
        before, self._nodes[row] = self._nodes[row], node
        if _is_same_to_rules(before, node):
            return
        self._fill_node_columns(row, node)
        self.images.replace(row, node.name, before.status.images, node.status.images)
        self._changed(row, NODE)

    def remove_node(self, node_name: str) -> None:
        """The last row moves into the gap, so that the table stays without holes."""
        row = self._row_of.pop(node_name, None)
        if row is None:
            return
        for uid in self._nominated.pop(node_name, {}):
            del self._nomination_of[uid]
        self.images.remove(node_name, self._nodes[row].status.images)
        self.storage.attached.node_changed(node_name)
        last = self.count - 1
        if row != last:
            for column in self._columns():
                column.move(last, row)
            self.names[row], self._nodes[row] = self.names[last], self._nodes[last]
            self._row_of[self.names[row]] = row
        else:
            for column in self._columns():
                column.array[last] = column.empty
        self.names.pop()
        self._nodes.pop()
        self.count -= 1
        self._changed(row, ROW)

    # Pods come, change and go.

    def place(self, pod: Pod) -> PlacedPod:
        """A bound pod as the API server has it: added, changed, or an assumption confirmed."""
        placed = PlacedPod(pod, pod.spec.node_name, footprint_of(pod), is_assumed=False)
        self._put(placed)
        return placed

    def assume(self, pod: Pod, node_name: str) -> None:
        """Counts the pod on that node from now on, before the API server has bound it."""
        if pod.uid in self._placed:
            raise ValueError(f"pod {pod.key} is on {self._placed[pod.uid].node_name} already")
        self.drop_nomination(pod.uid)
        self._put(PlacedPod(pod, node_name, footprint_of(pod), is_assumed=True))

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
        self._count_ports(placed, times=-1)
        row = self._row_of.get(placed.node_name)
        self._pods_matching.count(row, placed, times=-1)
        self.terms_carried.count_out(placed)
        self.storage.count_out(placed)
        is_measured_less = [each.count_out(row, placed) for each in self._ledgers.values()]
        if row is not None:
            self._count_in(row, placed, times=-1)
            self.lowest_priorities.went(row, placed, on_node.values())
            self._changed(row, PODS | READING if any(is_measured_less) else PODS)
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
        ledger = self._ledgers.get(source)
        if ledger is None:
            ledger = self._ledgers[source] = Ledger(self._capacity)
        uids = ledger.uids if ledger.is_sampled else tuple(self._placed)
        ledger.publish(reading, self.names)
        for uid in uids if ledger.is_sampled else ():
            placed = self._placed[uid]
            ledger.count_in(self._row_of.get(placed.node_name), [placed])
        self._changed(EVERY_ROW, READING)

    # How it is done.

    def _put(self, placed: PlacedPod) -> None:
        uid = placed.pod.uid
        before = self._placed.get(uid)
        if before is not None and before.looks_like(placed):
            self._placed[uid] = self._placed_on[placed.node_name][uid] = placed
            return
        if before is not None:
            self.remove_pod(uid)
        self._placed[uid] = placed
        self._placed_on.setdefault(placed.node_name, {})[uid] = placed
        self._count_ports(placed, times=1)
        row = self._row_of.get(placed.node_name)
        self._pods_matching.count(row, placed, times=1)
        self.terms_carried.count_in(placed)
        self.storage.count_in(placed)
        is_measured_more = [each.count_in(row, [placed]) for each in self._ledgers.values()]
        if row is not None:
            self._count_in(row, placed, times=1)
            self.lowest_priorities.came(row, placed)
            self._changed(row, PODS | READING if any(is_measured_more) else PODS)

    def _count_in(self, row: int, placed: PlacedPod, times: int) -> None:
        footprint = placed.footprint
        self.pod_count.array[row] += times
        for resource, amount in footprint.requests.items():
            self._resource_column(self._requested, resource).array[row] += times * amount
        self._nonzero[CPU].array[row] += times * footprint.nonzero_cpu_milli
        self._nonzero[MEMORY].array[row] += times * footprint.nonzero_memory_bytes

    def _count_ports(self, placed: PlacedPod, times: int) -> None:
        for held in placed.footprint.host_ports:
            key = (held.protocol, held.port)
            ips = self._ports.setdefault(key, {}).setdefault(placed.node_name, Counter())
            ips[held.ip] += times
            if ips[held.ip] == 0:
                del ips[held.ip]
            if not ips:
                del self._ports[key][placed.node_name]
            if not self._ports[key]:
                del self._ports[key]

    def _fill_node_columns(self, row: int, node: Node) -> None:
        self.unschedulable.array[row] = node.spec.unschedulable
        self.taint_set.array[row] = self.taint_sets.number(tuple(node.spec.taints))
        allocatable = _allocatable_of(node)
        for resource in allocatable:
            self._resource_column(self._allocatable, resource)
        for resource, column in self._allocatable.items():
            column.array[row] = allocatable.get(resource, 0)
        for key, labels in self._labels.items():
            labels.set(row, node.labels.get(key))

    def _resource_column(self, columns: dict[str, Column], resource: str) -> Column:
        column = columns.get(resource)
        if column is None:
            column = columns[resource] = Column(np.int64, 0, self._capacity)
        return column

    def _columns(self) -> Iterable[Column]:
        yield from (self.unschedulable, self.taint_set, self.pod_count)
        yield self.lowest_priorities.column
        yield from self._allocatable.values()
        yield from self._requested.values()
        yield from self._nonzero.values()
        yield from (labels.column for labels in self._labels.values())
        yield from self.images.columns
        yield from self._pods_matching.columns
        yield from self.terms_carried.columns
        yield from self.storage.attached.columns
        for ledger in self._ledgers.values():
            yield from ledger.columns.values()

    def _grow(self) -> None:
        self._capacity *= 2
        for column in self._columns():
            column.grow(self._capacity)
        for ledger in self._ledgers.values():
            ledger.grow(self._capacity)

    def _changed(self, row: int, what: int) -> None:
        self._log.append((row, what))
        if len(self._log) > _LONGEST_LOG:
            dropped = len(self._log) - _LONGEST_LOG // 2
            del self._log[:dropped]
            self._log_starts_at += dropped


def _is_same_to_rules(before: Node, after: Node) -> bool:
    """Heartbeats change only conditions and times, which no rule reads."""
    return (
        before.spec == after.spec
        and before.status == after.status
        and before.labels == after.labels
        and before.metadata.annotations == after.metadata.annotations
    )


def _allocatable_of(node: Node) -> dict[str, int]:
    try:
        return amounts_as_int(node.status.allocatable, f"node {node.name} status.allocatable")
    except QuantityError:
        return {}
