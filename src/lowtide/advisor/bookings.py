"""Bookings: adds the expected load of a pod to the readings of its best node for a short time,
until the watch shows where the other scheduler placed it. Used by the advisor."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod, bytes_in_memory

# Limits, because any client could fill the table, even with few large pods. The oldest go first.
MOST_BOOKINGS = 10_000
MOST_BYTES = 96 * 1024 * 1024  # in memory


@dataclass(frozen=True, slots=True)
class _Booking:
    until: float
    pod_bytes: int


class Bookings:
    """A booking is a guess. It counts in readings only, not in the resources of a node."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._by_uid: OrderedDict[str, _Booking] = OrderedDict()
        self._pod_bytes = 0

    def __len__(self) -> int:
        return len(self._by_uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def book(self, pod: Pod, node_name: str, *, until: float) -> None:
        """Book the pod, in place of an earlier booking. A pod without a uid, or with a node, is not
        booked."""
        self.drop(pod.uid)
        if not pod.uid or pod.spec.node_name or self._state.placed(pod.uid) is not None:
            return
        self._state.ledgers.book(pod, node_name)
        booking = _Booking(until, bytes_in_memory(pod))
        self._by_uid[pod.uid] = booking
        self._pod_bytes += booking.pod_bytes
        while len(self._by_uid) > MOST_BOOKINGS or self._pod_bytes > MOST_BYTES:
            self.drop(next(iter(self._by_uid)))

    def drop(self, uid: str) -> None:
        booking = self._by_uid.pop(uid, None)
        if booking is not None:
            self._pod_bytes -= booking.pod_bytes
            self._state.ledgers.unbook(uid)

    @contextmanager
    def without(self, pod: Pod) -> Iterator[None]:
        """Take back the pod's booking for the duration of a read-only question."""
        ledgers = self._state.ledgers
        node_name = ledgers.booked_on(pod.uid) if pod.uid in self else None
        if node_name is not None:
            ledgers.unbook(pod.uid)
        try:
            yield
        finally:
            if node_name is not None:
                ledgers.book(pod, node_name)

    def expire(self, now: float) -> None:
        """Drop old bookings, oldest first. All bookings of a profile last equally long. If profiles
        differ, a shorter booking may stay until the older ones before it end."""
        while self._by_uid and next(iter(self._by_uid.values())).until <= now:
            self.drop(next(iter(self._by_uid)))
