"""Pods that another scheduler asked about, counted for a short time in what is measured on the node
that was best for them: what it decides is known only when the watch tells. Used by the advisor."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod, bytes_in_memory

# The oldest go first: anyone who may ask could fill the table, also with few large pods.
MOST_BOOKINGS = 10_000
MOST_BYTES = 96 * 1024 * 1024  # in memory


@dataclass(frozen=True, slots=True)
class _Booking:
    until: float
    pod_bytes: int


class Bookings:
    """A guess: it makes a node less attractive, and never rejects one, as only what is measured
    knows of it."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._by_uid: OrderedDict[str, _Booking] = OrderedDict()
        self._pod_bytes = 0

    def __len__(self) -> int:
        return len(self._by_uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def book(self, pod: Pod, node_name: str, *, until: float) -> None:
        """Instead of what was booked for it before. A pod without a uid, or one that has a node,
        is not booked."""
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
        """As if this pod was not booked, for as long as somebody looks."""
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
        """Bookings of one profile are for equally long; where profiles differ, one may stay for
        as long as an older one does."""
        while self._by_uid and next(iter(self._by_uid.values())).until <= now:
            self.drop(next(iter(self._by_uid)))
