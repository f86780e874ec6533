"""Pods waiting to be placed: ready, backing off, parked until something changes, or gated.

Filled and emptied by the machine. Every waiting pod is in exactly one of the four places.
"""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lowtide.framework.change import Change
from lowtide.framework.plugin import PodRejection
from lowtide.objects.pod import Pod, signature_of

INITIAL_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 10.0
LONGEST_PARKED_SECONDS = 300.0

_FEW_ENTRIES = 64
ATTEMPT_FAILED = "ScheduleAttemptFailure"

SortKey = Callable[["QueuedPod"], Any]
MayEnqueue = Callable[[Pod], tuple[str, PodRejection] | None]
# Whether a change may help a pod that these rules refused.
MayHelp = Callable[[Pod, frozenset[str], Change], bool]

# Parked pods that one question is put for: what wakes them, who refused them, and their shape.
_Group = tuple[int, frozenset[str], bytes]


class Place(Enum):
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    PARKED = "unschedulable"
    GATED = "gated"
    NOWHERE = "nowhere"


# What kube-scheduler's metrics call these places.
_METRIC_QUEUE = {
    Place.ACTIVE: "active",
    Place.BACKOFF: "backoff",
    Place.ERROR_BACKOFF: "backoff",
    Place.PARKED: "unschedulable",
}


@dataclass(slots=True, eq=False)
class QueuedPod:
    pod: Pod
    queued_at: float
    first_seen_at: float
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    rejected_by: frozenset[str] = frozenset()
    retry_on: int = 0
    backoff_until: float = 0.0
    parked_until: float = math.inf
    place: Place = Place.NOWHERE
    group: _Group = (0, frozenset(), b"")  # while it is parked
    entry: int = 0  # the number of its newest heap entry; older entries are void

    @property
    def is_refused(self) -> bool:
        """Whether rules found no node for it when it was tried last."""
        return bool(self.rejected_by)


class Queue:
    def __init__(
        self,
        sort_key: SortKey,
        may_enqueue: MayEnqueue,
        *,
        may_help: MayHelp = lambda pod, rejected_by, change: True,
        initial_backoff_seconds: float = INITIAL_BACKOFF_SECONDS,
        max_backoff_seconds: float = MAX_BACKOFF_SECONDS,
    ) -> None:
        self._sort_key = sort_key
        self._may_enqueue = may_enqueue
        self._may_help = may_help
        self._initial_backoff_seconds = initial_backoff_seconds
        self._max_backoff_seconds = max_backoff_seconds
        self._waiting: dict[str, QueuedPod] = {}
        self._active = _Heap(Place.ACTIVE)
        self._backoff = _Heap(Place.BACKOFF)
        self._error_backoff = _Heap(Place.ERROR_BACKOFF)
        heaps = (self._active, self._backoff, self._error_backoff)
        self._heaps = {heap.place: heap for heap in heaps}
        self._parked: dict[_Group, dict[str, QueuedPod]] = {}  # then by uid
        self._next_flush_at = math.inf
        self.incoming: Counter[tuple[str, str]] = Counter()  # by queue and event, since the start

    # What is in it.

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._waiting.values())

    def pod(self, uid: str) -> Pod | None:
        """As it was last seen."""
        queued = self._waiting.get(uid)
        return None if queued is None else queued.pod

    def lengths(self) -> dict[str, int]:
        counts = dict.fromkeys(Place, 0)
        for queued in self._waiting.values():
            counts[queued.place] += 1
        return {
            "active": counts[Place.ACTIVE],
            "backoff": counts[Place.BACKOFF] + counts[Place.ERROR_BACKOFF],
            "unschedulable": counts[Place.PARKED],
            "gated": counts[Place.GATED],
        }

    # Pods come, change and go.

    def add(self, pod: Pod, now: float) -> None:
        """A pod that was not here before."""
        queued = QueuedPod(pod, queued_at=now, first_seen_at=now)
        self._enter(queued, Place.ACTIVE, because="UnschedulablePodAdd")

    def update(self, pod: Pod, now: float) -> None:
        """The pod itself changed: a gated or parked one may fit now."""
        queued = self._waiting[pod.uid]
        before, queued.pod = queued.pod, pod
        if queued.place in (Place.GATED, Place.PARKED):
            if _asks_the_same(before, pod):
                return
            self._leave(queued)
            self._enter(queued, self._after_backoff(queued, now), because="UnschedulablePodUpdate")
        else:
            self._enter(queued, queued.place)

    def remove(self, uid: str) -> QueuedPod | None:
        queued = self._waiting.get(uid)
        if queued is not None:
            self._leave(queued)
        return queued

    # Pods are taken, and come back.

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to place. It is in the caller's hands until put back or bound.

        When no pod is ready, one that backs off is taken early; not one that met an error.
        """
        self._release(now)
        queued = self._active.first() or self._backoff.first()
        if queued is None:
            return None
        self._leave(queued)
        queued.attempts += 1
        return queued

    def park(
        self,
        queued: QueuedPod,
        rejected_by: frozenset[str],
        retry_on: int,
        now: float,
        *,
        until: float = math.inf,
    ) -> None:
        """No node for it: it waits until something changes that those rules care about, at the
        longest until then, and never longer than kube-scheduler lets a pod wait."""
        queued.rejected_by = rejected_by
        queued.retry_on = retry_on
        queued.unschedulable_count += 1
        queued.error_count = 0
        self._back_off(queued, queued.unschedulable_count, now)
        queued.parked_until = min(until, now + LONGEST_PARKED_SECONDS)
        self._enter(queued, Place.PARKED, because=ATTEMPT_FAILED)

    def retry(self, queued: QueuedPod, now: float) -> None:
        """Something went wrong that is not the pod's fault: it is tried again after a while."""
        queued.rejected_by = frozenset()
        queued.error_count += 1
        self._back_off(queued, queued.error_count, now)
        self._enter(queued, Place.ERROR_BACKOFF, because=ATTEMPT_FAILED)

    def wake(self, change: Change, now: float) -> int:
        """Something changed: parked pods that may profit are tried again. Returns how many."""
        woken = [
            queued
            for (retry_on, rejected_by, _), group in self._parked.items()
            if retry_on & change.what and self._may_profit(group, rejected_by, change)
            for queued in group.values()
        ]
        self._wake_all(woken, now, change.event)
        return len(woken)

    def _may_profit(
        self, group: dict[str, QueuedPod], rejected_by: frozenset[str], change: Change
    ) -> bool:
        """Rules read of a pod what its shape holds: any of them stands for all."""
        pod = next(iter(group.values())).pod
        if change.highest_priority is not None and pod.spec.priority > change.highest_priority:
            return False
        return self._may_help(pod, rejected_by, change)

    def open_gate(self, uid: str, now: float) -> None:
        """What held this pod back may have ended."""
        queued = self._waiting.get(uid)
        if queued is not None and queued.place is Place.GATED:
            self._wake_all([queued], now, because="AssignedPodDelete")

    def retry_waiting(self, uid: str, now: float) -> None:
        """Nothing may come that would wake this pod: it is tried again after a while."""
        queued = self._waiting.get(uid)
        if queued is not None and queued.place in (Place.GATED, Place.PARKED):
            self._leave(queued)
            self.retry(queued, now)

    # Time passes.

    def is_ready(self, now: float) -> bool:
        self._release(now)
        return bool(self._active.first() or self._backoff.first())

    def next_change_at(self) -> float:
        """When time alone will make a pod ready; infinity when nothing waits for time."""
        first = self._error_backoff.first()
        retry_at = first.backoff_until if first else math.inf
        return min(retry_at, self._next_flush_at)

    # How it is done.

    def _release(self, now: float) -> None:
        for heap in (self._backoff, self._error_backoff):
            while (queued := heap.first()) is not None and queued.backoff_until <= now:
                self._leave(queued)
                self._enter(queued, Place.ACTIVE, because="BackoffComplete")
        if now >= self._next_flush_at:
            parked = [q for group in self._parked.values() for q in group.values()]
            old = [q for q in parked if q.parked_until <= now]
            self._wake_all(old, now, because="UnschedulableTimeout")
            self._plan_flush()

    def _wake_all(self, woken: list[QueuedPod], now: float, because: str) -> None:
        for queued in woken:
            self._leave(queued)
            self._enter(queued, self._after_backoff(queued, now), because)

    def _after_backoff(self, queued: QueuedPod, now: float) -> Place:
        return Place.ACTIVE if queued.backoff_until <= now else Place.BACKOFF

    def _back_off(self, queued: QueuedPod, failures: int, now: float) -> None:
        seconds = min(
            self._initial_backoff_seconds * 2.0 ** min(failures - 1, 30), self._max_backoff_seconds
        )
        queued.queued_at = now
        # kube-scheduler counts in whole seconds and looks once a second.
        queued.backoff_until = math.floor(now + seconds) + 1.0

    def _enter(self, queued: QueuedPod, place: Place, because: str = "") -> None:
        """Without `because` it was here already, and only its key may have changed."""
        if place in (Place.ACTIVE, Place.BACKOFF) and self._may_enqueue(queued.pod) is not None:
            place = Place.GATED
        queued.place = place
        self._waiting[queued.pod.uid] = queued
        if because and place in _METRIC_QUEUE:
            self.incoming[_METRIC_QUEUE[place], because] += 1
        if place in self._heaps:
            key = self._sort_key(queued)
            self._heaps[place].push(
                key if place is Place.ACTIVE else (queued.backoff_until, key), queued
            )
        elif place is Place.PARKED:
            queued.group = (queued.retry_on, queued.rejected_by, signature_of(queued.pod))
            self._parked.setdefault(queued.group, {})[queued.pod.uid] = queued
            self._next_flush_at = min(self._next_flush_at, queued.parked_until)

    def _leave(self, queued: QueuedPod) -> None:
        uid = queued.pod.uid
        self._waiting.pop(uid, None)
        if queued.place is Place.PARKED:
            group = self._parked[queued.group]
            del group[uid]
            if not group:
                del self._parked[queued.group]
        queued.place = Place.NOWHERE

    def _plan_flush(self) -> None:
        self._next_flush_at = min(
            (q.parked_until for group in self._parked.values() for q in group.values()),
            default=math.inf,
        )


class _Heap:
    """A heap whose entries may be void: a pod left it, or entered again with another key."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._entries: list[tuple[Any, int, QueuedPod]] = []
        self._pushed = 0
        self._clean_at = _FEW_ENTRIES

    def push(self, key: Any, queued: QueuedPod) -> None:
        self._pushed += 1
        queued.entry = self._pushed
        heapq.heappush(self._entries, (key, self._pushed, queued))
        if len(self._entries) > self._clean_at:
            self._drop_void()

    def first(self) -> QueuedPod | None:
        while self._entries:
            if self._is_valid(self._entries[0]):
                return self._entries[0][2]
            heapq.heappop(self._entries)
        return None

    def _drop_void(self) -> None:
        """A standby never looks at the head, so void entries would stay for ever."""
        self._entries = [entry for entry in self._entries if self._is_valid(entry)]
        heapq.heapify(self._entries)
        self._clean_at = max(_FEW_ENTRIES, 2 * len(self._entries))

    def _is_valid(self, item: tuple[Any, int, QueuedPod]) -> bool:
        _, entry, queued = item
        return queued.place is self.place and queued.entry == entry


def _asks_the_same(before: Pod, after: Pod) -> bool:
    """Whether nothing changed that a rule may read; the scheduler writes only status itself."""
    return signature_of(before) == signature_of(after)
