"""The ledgers of all sources, and the booked pods: guesses of the extender about where another
scheduler places a pod. A booked pod counts in readings only."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from lowtide.cluster.changes import READING
from lowtide.cluster.columns import Column
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.indexes.ledger import Ledger
from lowtide.cluster.placed import PlacedPod
from lowtide.cluster.reading import Reading
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class _Booked:
    pod: Pod
    node_name: str


class Ledgers(Index):
    """`changed` is called with each row that a booking changes."""

    def __init__(self, table: Table, changed: Callable[[int], None]) -> None:
        super().__init__(table)
        self.is_idle = True  # until something is published
        self._changed = changed
        self._by_source: dict[Hashable, Ledger] = {}
        self._booked: dict[str, _Booked] = {}  # by uid

    def ledger(self, source: Hashable) -> Ledger | None:
        return self._by_source.get(source)

    @property
    def columns(self) -> Iterator[Column]:
        for ledger in self._by_source.values():
            yield from ledger.columns.values()

    def publish(self, source: Hashable, reading: Reading) -> None:
        """Replace the reading of this source. Pods that it does not fully measure are counted in
        again."""
        self.is_idle = False
        table, placed = self._table, self._table.all_placed()
        ledger = self._by_source.get(source)
        if ledger is None:
            ledger = self._by_source[source] = Ledger()
        uids = ledger.uids if ledger.is_sampled else (*placed, *self._booked)
        ledger.publish(reading, table.names, table.capacity)
        if ledger.is_sampled:
            counted = [placed.get(uid) or self._booked[uid] for uid in uids]
            ledger.count_in_all([(table.row_of(each.node_name), each.pod) for each in counted])

    def node_added(self, row: int, node: Node) -> None:
        if not self._by_source:
            return
        pods = [each.pod for each in self._table.placed_on(node.name).values()]
        pods += [each.pod for each in self._booked.values() if each.node_name == node.name]
        for ledger in self._by_source.values():
            ledger.fill(row, node.name)
            for pod in pods:
                ledger.count_in(row, pod)

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        return self._count_in(row, placed.pod)

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        return self._count_out(row, placed.pod.uid)

    def pod_relabelled(self, row: int | None, before: PlacedPod, after: PlacedPod) -> int:
        changed, pod = 0, after.pod
        for ledger in self._by_source.values():
            if ledger.would_count(pod) != ledger.counted(pod.uid):
                changed |= ledger.count_out(row, pod.uid)
                changed |= ledger.count_in(row, pod)
        return READING if changed else 0

    def booked_on(self, uid: str) -> str | None:
        """The node that the pod is booked on, or None."""
        booked = self._booked.get(uid)
        return None if booked is None else booked.node_name

    def book(self, pod: Pod, node_name: str) -> None:
        """Count in a pod that is neither placed nor booked."""
        self._booked[pod.uid] = _Booked(pod, node_name)
        row = self._table.row_of(node_name)
        if self._count_in(row, pod) and row is not None:
            self._changed(row)

    def unbook(self, uid: str) -> None:
        booked = self._booked.pop(uid, None)
        row = None if booked is None else self._table.row_of(booked.node_name)
        if booked is not None and self._count_out(row, uid) and row is not None:
            self._changed(row)

    def _count_in(self, row: int | None, pod: Pod) -> int:
        """READING if a ledger's row changed, else 0."""
        changed = 0
        for ledger in self._by_source.values():
            changed |= ledger.count_in(row, pod)
        return READING if changed else 0

    def _count_out(self, row: int | None, uid: str) -> int:
        changed = 0
        for ledger in self._by_source.values():
            changed |= ledger.count_out(row, uid)
        return READING if changed else 0
