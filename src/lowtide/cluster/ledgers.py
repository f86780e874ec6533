"""The ledgers of all sources together, and the pods that are booked: counted in what is measured,
and nowhere else, before it is known where they go. ClusterState keeps them true."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lowtide.cluster.columns import Column
from lowtide.cluster.ledger import Ledger
from lowtide.cluster.placed import PlacedPod
from lowtide.cluster.reading import Reading
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class _Booked:
    pod: Pod
    node_name: str


class Ledgers:
    """`row_of` is ClusterState's own: where each node is in the table. `changed` hears of rows that
    bookings change."""

    def __init__(self, row_of: Mapping[str, int], changed: Callable[[int], None]) -> None:
        self._row_of = row_of
        self._changed = changed
        self._by_source: dict[Hashable, Ledger] = {}
        self._booked: dict[str, _Booked] = {}  # by uid

    def of(self, source: Hashable) -> Ledger | None:
        return self._by_source.get(source)

    @property
    def columns(self) -> Iterator[Column]:
        for ledger in self._by_source.values():
            yield from ledger.columns.values()

    def publish(
        self,
        source: Hashable,
        reading: Reading,
        names: Sequence[str],
        capacity: int,
        placed: Mapping[str, PlacedPod],
    ) -> None:
        """Replaces what is measured under this source, and counts anew what is still to come."""
        ledger = self._by_source.get(source)
        if ledger is None:
            ledger = self._by_source[source] = Ledger()
        uids = ledger.uids if ledger.is_sampled else (*placed, *self._booked)
        ledger.publish(reading, names, capacity)
        if ledger.is_sampled:
            counted = [placed.get(uid) or self._booked[uid] for uid in uids]
            ledger.count_in_all([(self._row_of.get(each.node_name), each.pod) for each in counted])

    def fill(self, row: int, node_name: str, placed: Iterable[PlacedPod]) -> None:
        """A row that is new to the table, with the pods on that node."""
        if not self._by_source:
            return
        pods = [each.pod for each in placed]
        pods += [each.pod for each in self._booked.values() if each.node_name == node_name]
        for ledger in self._by_source.values():
            ledger.fill(row, node_name)
            for pod in pods:
                ledger.count_in(row, pod)

    def count_in(self, row: int | None, pod: Pod) -> bool:
        """Whether anything that is measured on the row changed."""
        changed = False
        for ledger in self._by_source.values():
            changed |= ledger.count_in(row, pod)
        return changed

    def count_again(self, row: int | None, pod: Pod) -> bool:
        """A pod that changed where it is; whether anything that is measured on the row did."""
        changed = False
        for ledger in self._by_source.values():
            if ledger.would_count(pod) != ledger.counted(pod.uid):
                changed |= ledger.count_out(row, pod.uid)
                changed |= ledger.count_in(row, pod)
        return changed

    def count_out(self, row: int | None, uid: str) -> bool:
        changed = [ledger.count_out(row, uid) for ledger in self._by_source.values()]
        return any(changed)

    def booked_on(self, uid: str) -> str | None:
        """The node that the pod is booked on."""
        booked = self._booked.get(uid)
        return None if booked is None else booked.node_name

    def book(self, pod: Pod, node_name: str) -> None:
        """A pod that is neither placed nor booked."""
        self._booked[pod.uid] = _Booked(pod, node_name)
        row = self._row_of.get(node_name)
        if self.count_in(row, pod) and row is not None:
            self._changed(row)

    def unbook(self, uid: str) -> None:
        booked = self._booked.pop(uid, None)
        row = None if booked is None else self._row_of.get(booked.node_name)
        if booked is not None and self.count_out(row, uid) and row is not None:
            self._changed(row)
