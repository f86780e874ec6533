"""One record per pending pod, and the indexes over the records.

A pod is pending from the watch event that brings it until its binding is confirmed or it is gone.
The machine and its parts share the records; `Pods.move` alone changes the stage of one.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from lowtide.framework.decision import Decision
from lowtide.framework.plugin import Queued
from lowtide.framework.profile import Profile
from lowtide.objects.pod import Pod, signature_of

_FEW_ENTRIES = 64


class Stage(Enum):
    NOT_PENDING = "not pending"  # before it is added; once it is bound or gone
    GATED = "gated"  # a plugin keeps it out of the queue
    ACTIVE = "active"  # ready for its turn
    BACKOFF = "backoff"  # takes its turn later, or as soon as no pod is active
    ERROR_BACKOFF = "error backoff"  # the same after an error, but never earlier
    UNSCHEDULABLE = "unschedulable"  # no node: it waits for a change that may help
    EVICTING = "evicting"  # a change may have helped, but its victims are not gone yet
    DECIDING = "deciding"  # it has its turn; extenders may be asked
    WAITING = "waiting"  # assumed on its node; plugins make it wait in Permit
    BINDING = "binding"  # its binding has no answer yet
    UNCONFIRMED = "unconfirmed"  # bound, as the answer says; the watch has not said so yet

    __hash__ = object.__hash__  # Enum has one written in Python, and stages are keys


_RELEASED_TO = {Stage.ACTIVE, Stage.BACKOFF, Stage.ERROR_BACKOFF, Stage.GATED}
_DRAWN: Mapping[Stage, Set[Stage]] = {
    Stage.NOT_PENDING: {Stage.ACTIVE, Stage.GATED},
    Stage.GATED: {Stage.ACTIVE, Stage.BACKOFF},
    Stage.ACTIVE: {Stage.GATED, Stage.DECIDING},
    Stage.BACKOFF: {Stage.ACTIVE, Stage.GATED, Stage.DECIDING},
    Stage.ERROR_BACKOFF: {Stage.ACTIVE, Stage.GATED},
    Stage.UNSCHEDULABLE: {*_RELEASED_TO, Stage.EVICTING},
    Stage.EVICTING: _RELEASED_TO,
    Stage.DECIDING: {Stage.UNSCHEDULABLE, Stage.ERROR_BACKOFF, Stage.WAITING, Stage.BINDING},
    Stage.WAITING: {Stage.BINDING, Stage.UNSCHEDULABLE, Stage.ERROR_BACKOFF},
    Stage.BINDING: {Stage.UNCONFIRMED, Stage.ERROR_BACKOFF},
    Stage.UNCONFIRMED: {Stage.ERROR_BACKOFF},
}
# ARCHITECTURE.md draws these. Wherever it is, a pod may be deleted, or bound by somebody else.
TRANSITIONS: Mapping[Stage, Set[Stage]] = {
    before: stages | ({Stage.NOT_PENDING} - {before}) for before, stages in _DRAWN.items()
}

QUEUED = frozenset(
    {
        Stage.GATED,
        Stage.ACTIVE,
        Stage.BACKOFF,
        Stage.ERROR_BACKOFF,
        Stage.UNSCHEDULABLE,
        Stage.EVICTING,
    }
)
ASSUMED = frozenset({Stage.WAITING, Stage.BINDING, Stage.UNCONFIRMED})

# Unschedulable pods that one question is asked for: what wakes them, who rejected them, and their
# signature.
Group = tuple[int, frozenset[str], bytes]
SortKey = Callable[[Queued], Any]


@dataclass(slots=True)
class PendingEviction:
    """The pods that have to go from a node for another to fit there."""

    pod: Pod  # that needs the room, as it was then
    node_name: str
    victims: set[str]  # uids of those that have not gone yet
    is_written: bool = False  # whether the writes have ended


@dataclass(slots=True, eq=False)
class PendingPod:
    pod: Pod  # as the watch brought it last
    uid: str
    profile: Profile
    first_seen_at: float
    queued_at: float
    stage: Stage = Stage.NOT_PENDING
    entry: int = 0  # in the heap of its stage
    _signature: bytes = b""

    # In the queue.
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    backoff_until: float = 0.0
    rejected_by: frozenset[str] = frozenset()  # the plugins that left it no node the last time
    retry_on: int = 0
    parked_until: float = 0.0  # while it is unschedulable
    group: Group = (0, frozenset(), b"")  # while it is unschedulable
    eviction: PendingEviction | None = None  # while it waits for its victims to go

    # From its turn until it is bound.
    attempt_began_at: float = 0.0
    decision: Decision | None = None
    node_name: str = ""  # where it is assumed
    is_doubtful: bool = False  # whether others have changed its node since it was chosen
    memories: dict[str, Any] = field(default_factory=dict)  # by plugin: to be handed to it again
    deadlines: dict[str, "Deadline"] = field(default_factory=dict)  # by what they wait for

    # Nominations to be written that its status was not seen to say yet, newest last.
    asked_nominations: tuple[str, ...] = ()

    @property
    def signature(self) -> bytes:
        """All that plugins may read of the pod, as a key."""
        if not self._signature:
            self._signature = signature_of(self.pod)
        return self._signature

    def update(self, pod: Pod) -> None:
        self.pod, self._signature = pod, b""

    @property
    def is_rejected(self) -> bool:
        """Whether plugins left it no node when it was tried last."""
        return bool(self.rejected_by)


@dataclass(slots=True, eq=False)
class Deadline:
    """A moment until which a pod waits in its stage for something other than its turn."""

    record: PendingPod
    at: float
    seconds: float  # how long it waits
    waits_for: str  # the plugin whose permission it needs; "" for the watch to confirm its binding
    entry: int = 0


class Pods:
    """All records: by uid, by stage, and by what they wait for."""

    def __init__(self, sort_key: SortKey) -> None:
        self._sort_key = sort_key
        self.by_uid: dict[str, PendingPod] = {}
        self.counts = dict.fromkeys(Stage, 0)  # of those that are pending
        numbers = count(1)
        self.active = Heap[PendingPod](numbers)
        self.backoff = Heap[PendingPod](numbers)
        self.error_backoff = Heap[PendingPod](numbers)
        self._heaps = {
            Stage.ACTIVE: self.active,
            Stage.BACKOFF: self.backoff,
            Stage.ERROR_BACKOFF: self.error_backoff,
        }
        self.unschedulable: dict[Group, dict[str, PendingPod]] = {}  # then by uid
        self.deadlines = Heap[Deadline](numbers)

    def __iter__(self) -> Iterator[PendingPod]:
        return iter(self.by_uid.values())

    def move(self, record: PendingPod, stage: Stage) -> None:
        """The one place where a stage changes. A pod moves to its own stage when its sort key may
        have changed."""
        before, record.entry = record.stage, 0
        if stage is not before:
            if stage not in TRANSITIONS[before]:
                raise ValueError(f"pod {record.pod.key} is {before.value}: not to be {stage.value}")
            record.stage = stage
            self.counts[before] -= 1
            self.counts[stage] += 1
            if before is Stage.NOT_PENDING:
                self.by_uid[record.uid] = record
            elif before is Stage.UNSCHEDULABLE:
                self._leave_group(record)
            elif record.deadlines:
                self._end_deadlines(record)
        heap = self._heaps.get(stage)
        if heap is not None:
            key = self._sort_key(record)
            heap.push(key if stage is Stage.ACTIVE else (record.backoff_until, key), record)
        elif stage is Stage.UNSCHEDULABLE:
            record.group = (record.retry_on, record.rejected_by, record.signature)
            self.unschedulable.setdefault(record.group, {})[record.uid] = record
        elif stage is Stage.NOT_PENDING:
            del self.by_uid[record.uid]

    def _leave_group(self, record: PendingPod) -> None:
        group = self.unschedulable[record.group]
        del group[record.uid]
        if not group:
            del self.unschedulable[record.group]

    def _end_deadlines(self, record: PendingPod) -> None:
        for deadline in record.deadlines.values():
            deadline.entry = 0
        record.deadlines.clear()

    def wait(self, record: PendingPod, deadline: Deadline) -> None:
        """Until then; who leaves the stage has no deadlines left."""
        record.deadlines[deadline.waits_for] = deadline
        self.deadlines.push(deadline.at, deadline)

    def end_deadline(self, record: PendingPod, waits_for: str) -> None:
        deadline = record.deadlines.pop(waits_for, None)
        if deadline is not None:
            deadline.entry = 0


class _Entered(Protocol):
    entry: int  # the number of its entry in a heap; entries with other numbers are void


T = TypeVar("T", bound=_Entered)


class Heap(Generic[T]):
    """A heap that nothing is taken from but its head: other entries become void."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._entries: list[tuple[Any, int, T]] = []
        self._clean_at = _FEW_ENTRIES

    def push(self, key: Any, item: T) -> None:
        """Of equal keys, what was pushed earlier comes first."""
        item.entry = next(self._numbers)
        heapq.heappush(self._entries, (key, item.entry, item))
        if len(self._entries) > self._clean_at:
            self._drop_void()

    def first(self) -> T | None:
        while self._entries:
            _, number, item = self._entries[0]
            if item.entry == number:
                return item
            heapq.heappop(self._entries)
        return None

    def _drop_void(self) -> None:
        """A standby never looks at the head, so void entries would stay for ever."""
        self._entries = [entry for entry in self._entries if entry[2].entry == entry[1]]
        heapq.heapify(self._entries)
        self._clean_at = max(_FEW_ENTRIES, 2 * len(self._entries))


def memory_of(memories: Mapping[str, Any], plugin: Any) -> dict[str, Any]:
    """What this plugin said to remember about the pod, as the keyword that it is handed as."""
    memory = memories.get(plugin.name)
    return {} if memory is None else {"memory": memory}
