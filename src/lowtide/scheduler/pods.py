"""One record per pending pod, and the indexes over the records.

A pod is pending from the watch event that brings it until its binding is confirmed or it is gone.
The machine and its parts share the records. Only `Pods.move` changes a record's stage.
"""

import heapq
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from lowtide.framework.asking import ask
from lowtide.framework.decision import Decision
from lowtide.framework.plugin import PluginError, QueueSortPlugin
from lowtide.framework.profile import Profile
from lowtide.objects.pod import Pod, signature_of
from lowtide.objects.quantity import QuantityError

_FEW_ENTRIES = 64


class Stage(Enum):
    NOT_PENDING = "not pending"  # not added yet, bound, or gone
    GATED = "gated"  # a plugin keeps it out of the queue
    ACTIVE = "active"  # ready for its turn
    BACKOFF = "backoff"  # waits until its backoff ends or no pod is active
    ERROR_BACKOFF = "error backoff"  # waits after an error, always until its backoff ends
    UNSCHEDULABLE = "unschedulable"  # fits nowhere; waits for a change that may help
    EVICTING = "evicting"  # woken, but its victims are not gone yet
    DECIDING = "deciding"  # has its turn; may be paused while extenders are asked
    WAITING = "waiting"  # assumed on its node; a plugin makes it wait in Permit
    BINDING = "binding"  # its binding has no answer yet
    UNCONFIRMED = "unconfirmed"  # its binding succeeded; the watch has not shown it yet

    __hash__ = object.__hash__  # stages are dict keys, and Enum's own hash is slow


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
# ARCHITECTURE.md draws these. In every stage, a pod may be deleted or bound by somebody else; in
# DECIDING, the machine sees that after the extenders' answer.
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

# Unschedulable pods that are woken together: the changes that wake them (bits), the plugins that
# rejected them, and their signature.
Group = tuple[int, frozenset[str], bytes]


@dataclass(slots=True)
class PendingEviction:
    """The victims that must leave a node so that another pod fits there."""

    pod: Pod  # the preemptor, as it was when the eviction began
    node_name: str
    victims: set[str]  # uids of those that are not gone yet
    is_written: bool = False  # whether EvictionEnded has arrived


@dataclass(slots=True, eq=False)
class PendingPod:
    pod: Pod  # as the watch last delivered it
    uid: str
    profile: Profile
    first_seen_at: float
    queued_at: float
    stage: Stage = Stage.NOT_PENDING
    entry: int = 0  # its valid entry in the heap of its stage; 0: none
    _signature: bytes = b""

    # In the queue.
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    backoff_until: float = 0.0
    sort_error: str = ""  # why it has no sort key; its next turn fails with this
    rejected_by: frozenset[str] = frozenset()  # the plugins that rejected it in its last attempt
    retry_on: int = 0  # bits of the changes that may help it
    parked_until: float = 0.0  # while it is unschedulable
    group: Group = (0, frozenset(), b"")  # while it is unschedulable
    eviction: PendingEviction | None = None  # until its victims are gone

    # From its turn until it is bound.
    attempt_began_at: float = 0.0
    decision: Decision | None = None
    node_name: str = ""  # where it is assumed
    is_doubtful: bool = False  # whether others changed its node after it was chosen
    is_back: bool = False  # whether the watch showed it bound or gone, and then without a node
    memories: dict[str, Any] = field(default_factory=dict)  # by plugin: kept since its `reserve`
    deadlines: dict[str, "Deadline"] = field(default_factory=dict)  # by what they wait for

    # Nominations that we asked to write and that its status has not shown yet, newest last. ""
    # asks to remove the nomination.
    asked_nominations: tuple[str, ...] = ()

    @property
    def signature(self) -> bytes:
        """Everything that plugins may read of the pod, as a key."""
        if not self._signature:
            self._signature = signature_of(self.pod)
        return self._signature

    def update(self, pod: Pod) -> None:
        self.pod, self._signature = pod, b""

    @property
    def is_rejected(self) -> bool:
        """Whether plugins rejected it in its last attempt."""
        return bool(self.rejected_by)


@dataclass(slots=True, eq=False)
class Deadline:
    """Until when a pod waits in Permit, or for the watch to confirm its binding. Turns look at
    deadlines, so none passes while an extender is asked."""

    record: PendingPod
    at: float
    seconds: float  # from the start of the wait until `at`
    waits_for: str  # the plugin that makes it wait in Permit; "" for the watch
    entry: int = 0


class Pods:
    """All records: by uid, by stage and by deadline."""

    def __init__(self, sorter: QueueSortPlugin) -> None:
        self._sorter = sorter
        self.by_uid: dict[str, PendingPod] = {}
        self.counts = dict.fromkeys(Stage, 0)  # pending pods, by stage
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
        """The only place where a stage changes. Moving a pod to its own stage sorts it anew, after
        its sort key may have changed."""
        before, heap = record.stage, self._heaps.get(stage)
        if stage is not before and stage not in TRANSITIONS[before]:
            raise ValueError(f"pod {record.pod.key} cannot go from {before.value} to {stage.value}")
        key = None if heap is None else self._key(record)
        record.entry = 0
        if stage is not before:
            record.stage = stage
            self.counts[before] -= 1
            self.counts[stage] += 1
            if before is Stage.NOT_PENDING:
                self.by_uid[record.uid] = record
            elif before is Stage.UNSCHEDULABLE:
                self._leave_group(record)
            elif record.deadlines:
                self._end_deadlines(record)
        if heap is not None:
            heap.push(key if stage is Stage.ACTIVE else (record.backoff_until, key), record)
        elif stage is Stage.UNSCHEDULABLE:
            record.group = (record.retry_on, record.rejected_by, record.signature)
            self.unschedulable.setdefault(record.group, {})[record.uid] = record
        elif stage is Stage.NOT_PENDING:
            del self.by_uid[record.uid]

    def _key(self, record: PendingPod) -> tuple[Any, ...]:
        """A pod whose sort key fails comes first: its turn reports the error."""
        try:
            key, record.sort_error = ask(self._sorter, "sort_key", record), ""
        except (PluginError, QuantityError) as error:
            record.sort_error = str(error)
            return (0,)
        return (1, key)

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
        """Give the pod another deadline. All its deadlines end when it leaves its stage."""
        record.deadlines[deadline.waits_for] = deadline
        self.deadlines.push(deadline.at, deadline)

    def end_deadline(self, record: PendingPod, waits_for: str) -> None:
        deadline = record.deadlines.pop(waits_for, None)
        if deadline is not None:
            deadline.entry = 0


class _Entered(Protocol):
    entry: int  # the number of its valid entry in a heap; other entries are void


T = TypeVar("T", bound=_Entered)


class Heap(Generic[T]):
    """A heap whose items can leave from anywhere: their entries stay, but become void."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._entries: list[tuple[Any, int, T]] = []
        self._clean_at = _FEW_ENTRIES

    def push(self, key: Any, item: T) -> None:
        """Among equal keys, the item pushed first comes first."""
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
        """A standby replica never reads the head, so its void entries would pile up."""
        self._entries = [entry for entry in self._entries if entry[2].entry == entry[1]]
        heapq.heapify(self._entries)
        self._clean_at = max(_FEW_ENTRIES, 2 * len(self._entries))


def memory_of(memories: Mapping[str, Any], plugin: Any) -> dict[str, Any]:
    """What this plugin returned to remember about the pod, as the keyword argument `memory`."""
    memory = memories.get(plugin.name)
    return {} if memory is None else {"memory": memory}
