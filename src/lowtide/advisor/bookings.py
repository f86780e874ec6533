"""Pods that another scheduler asked about, counted for a short time on the node that was best for
them: what it decides is known only when the watch tells of it. Used by the advisor."""

from collections import OrderedDict
from dataclasses import dataclass, replace

from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod, shape_of

# The oldest go first: anyone who may ask could fill the table, also with few large pods.
MOST_BOOKINGS = 10_000
MOST_BYTES = 32 * 1024 * 1024  # of the pods' shapes; decoded they take some times as much


@dataclass(frozen=True, slots=True)
class _Booking:
    until: float
    shape_bytes: int
    promised: Pod | None  # the pod as it was when the watch said that it is nominated


class Bookings:
    """A booked pod is assumed in the state, as one whose binding is under way."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._by_uid: OrderedDict[str, _Booking] = OrderedDict()
        self._shape_bytes = 0

    def __len__(self) -> int:
        return len(self._by_uid)

    def book(self, pod: Pod, node_name: str, *, until: float) -> None:
        """Instead of what was booked for it before. A pod without a uid, or one that has a node,
        is not booked."""
        self.drop(pod.uid)
        if not pod.uid or pod.spec.node_name or self._state.placed(pod.uid) is not None:
            return
        promised = self._state.nominated().get(self._state.nomination_of(pod.uid), {}).get(pod.uid)
        self._state.assume(pod, node_name)
        booking = _Booking(until, len(shape_of(pod)), promised)
        self._by_uid[pod.uid] = booking
        self._shape_bytes += booking.shape_bytes
        while len(self._by_uid) > MOST_BOOKINGS or self._shape_bytes > MOST_BYTES:
            self.drop(next(iter(self._by_uid)))

    def drop(self, uid: str) -> None:
        """The pod counts as pending again, with the node that it is nominated to."""
        booking = self._take(uid)
        if booking is None:
            return
        self._state.forget(uid)
        if booking.promised is not None:
            self._state.nominate(booking.promised, booking.promised.status.nominated_node_name)

    def renew(self, pod: Pod) -> bool:
        """The watch tells of a pending pod; whether it is booked. Then a node that it is nominated
        to counts when the booking ends."""
        booking = self._by_uid.get(pod.uid)
        if booking is None:
            return False
        promised = pod if pod.status.nominated_node_name else None
        self._by_uid[pod.uid] = replace(booking, promised=promised)
        return True

    def settle(self, uid: str) -> None:
        """What became of the pod is known."""
        self._take(uid)

    def expire(self, now: float) -> None:
        """Bookings of one profile are for equally long; where profiles differ, one may stay for
        as long as an older one does."""
        while self._by_uid and next(iter(self._by_uid.values())).until <= now:
            self.drop(next(iter(self._by_uid)))

    def _take(self, uid: str) -> _Booking | None:
        booking = self._by_uid.pop(uid, None)
        if booking is not None:
            self._shape_bytes -= booking.shape_bytes
        return booking
