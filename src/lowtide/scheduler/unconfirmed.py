"""Placements whose binding was answered with success, and which the watch has not confirmed yet.
When that takes too long, their pods are read from the API server. Used by the machine."""

import heapq
import math
from dataclasses import dataclass

from lowtide.scheduler.placements import Placement

# The watch usually confirms a binding within a second.
CONFIRMED_WITHIN_SECONDS = 30.0
# While the watch is behind, a pod is read again after twice as long each time.
LONGEST_WAIT_SECONDS = 600.0
MOST_AT_ONCE = 4


@dataclass(slots=True)
class _Entry:
    placement: Placement
    wait_seconds: float
    number: int  # of its entry in the heap; 0 while the pod is being read


class Unconfirmed:
    def __init__(self) -> None:
        self._by_uid: dict[str, _Entry] = {}
        self._due: list[tuple[float, int, str]] = []  # a heap; entries with old numbers are void
        self._pushed = 0
        self._being_read: set[str] = set()

    def placement(self, uid: str) -> Placement | None:
        entry = self._by_uid.get(uid)
        return None if entry is None else entry.placement

    def add(self, placement: Placement, now: float) -> None:
        self._wait(_Entry(placement, CONFIRMED_WITHIN_SECONDS, 0), now)

    def confirm(self, uid: str) -> None:
        """The watch brought the pod with a node, or the pod is gone."""
        self._by_uid.pop(uid, None)

    def next_due_at(self) -> float:
        if len(self._being_read) >= MOST_AT_ONCE:
            return math.inf
        while self._due and self._is_void(self._due[0]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else math.inf

    def take_due(self, now: float) -> list[Placement]:
        """The placements whose pods are to be read now; `looked_up` ends each reading."""
        taken = []
        while self.next_due_at() <= now:
            *_, uid = heapq.heappop(self._due)
            entry = self._by_uid[uid]
            entry.number = 0
            self._being_read.add(uid)
            taken.append(entry.placement)
        return taken

    def looked_up(self, uid: str, *, is_bound: bool, now: float) -> Placement | None:
        """The placement, which ends here, where the pod is not bound; else it waits on, longer."""
        self._being_read.discard(uid)
        entry = self._by_uid.get(uid)
        if entry is None or entry.number:
            return None  # it was confirmed meanwhile
        if not is_bound:
            del self._by_uid[uid]
            return entry.placement
        entry.wait_seconds = min(2 * entry.wait_seconds, LONGEST_WAIT_SECONDS)
        self._wait(entry, now)
        return None

    def _wait(self, entry: _Entry, now: float) -> None:
        self._pushed += 1
        entry.number = self._pushed
        uid = entry.placement.queued.pod.uid
        self._by_uid[uid] = entry
        heapq.heappush(self._due, (now + entry.wait_seconds, entry.number, uid))

    def _is_void(self, due: tuple[float, int, str]) -> bool:
        _, number, uid = due
        entry = self._by_uid.get(uid)
        return entry is None or entry.number != number
