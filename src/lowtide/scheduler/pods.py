"""One record per pending pod, and the indexes over the records.

A pod is pending from the watch event that brings it until its binding is confirmed or it is gone.
The machine and its parts share the records; `Pods.move` alone changes the stage of one.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from lowtide.framework.decision import Decision
from lowtide.framework.plugin import Queued
from lowtide.framework.profile import Profile
from lowtide.objects.pod import Pod, shape_of

_FEW_ENTRIES = 64

T = TypeVar("T")


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


# ARCHITECTURE.md draws these.
TRANSITIONS: Mapping[Stage, frozenset[Stage]] = {
    Stage.NOT_PENDING: frozenset({Stage.ACTIVE, Stage.GATED}),
    Stage.GATED: frozenset({Stage.ACTIVE, Stage.BACKOFF, Stage.NOT_PENDING}),
    Stage.ACTIVE: frozenset({Stage.GATED, Stage.DECIDING, Stage.NOT_PENDING}),
    Stage.BACKOFF: frozenset({Stage.ACTIVE, Stage.GATED, Stage.DECIDING, Stage.NOT_PENDING}),
    Stage.ERROR_BACKOFF: frozenset({Stage.ACTIVE, Stage.GATED, Stage.NOT_PENDING}),
    Stage.UNSCHEDULABLE: frozenset(
        {
            Stage.ACTIVE,
            Stage.BACKOFF,
            Stage.ERROR_BACKOFF,
            Stage.GATED,
            Stage.EVICTING,
            Stage.NOT_PENDING,
        }
    ),
    Stage.EVICTING: frozenset(
        {Stage.ACTIVE, Stage.BACKOFF, Stage.ERROR_BACKOFF, Stage.GATED, Stage.NOT_PENDING}
    ),
    Stage.DECIDING: frozenset(
        {
            Stage.UNSCHEDULABLE,
            Stage.ERROR_BACKOFF,
            Stage.WAITING,
            Stage.BINDING,
            Stage.NOT_PENDING,
        }
    ),
    Stage.WAITING: frozenset(
        {Stage.BINDING, Stage.UNSCHEDULABLE, Stage.ERROR_BACKOFF, Stage.NOT_PENDING}
    ),
    Stage.BINDING: frozenset({Stage.UNCONFIRMED, Stage.ERROR_BACKOFF, Stage.NOT_PENDING}),
    Stage.UNCONFIRMED: frozenset({Stage.ERROR_BACKOFF, Stage.NOT_PENDING}),
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


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment until which a pod waits for something other than its turn."""

    at: float
    seconds: float  # how long it waits
    waits_for: str  # the plugin whose permission it needs; "" for the watch to confirm its binding


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
    entry: int = 0  # the number of its newest entry in a heap; older entries are void
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
    deadlines: dict[str, Deadline] = field(default_factory=dict)  # by what they wait for

    # Nominations to be written that its status was not seen to say yet, newest last.
    asked_nominations: tuple[str, ...] = ()

    @property
    def signature(self) -> bytes:
        """All that plugins may read of the pod, as a key."""
        if not self._signature:
            self._signature = shape_of(self.pod)
        return self._signature

    def update(self, pod: Pod) -> None:
        self.pod, self._signature = pod, b""

    @property
    def is_refused(self) -> bool:
        """Whether plugins left it no node when it was tried last."""
        return bool(self.rejected_by)


class Pods:
    """All records: by uid, by stage, and by what they wait for."""

    def __init__(self, sort_key: SortKey) -> None:
        self._sort_key = sort_key
        self._by_uid: dict[str, PendingPod] = {}
        self.counts = dict.fromkeys(Stage, 0)  # of those that are pending
        self.active = _Heap(_is_newest)
        self.backoff = _Heap(_is_newest)
        self.error_backoff = _Heap(_is_newest)
        self.unschedulable: dict[Group, dict[str, PendingPod]] = {}  # then by uid
        self._deadlines = _Heap(_is_awaited)
        self._entry_count = 0

    def __iter__(self) -> Iterator[PendingPod]:
        return iter(self._by_uid.values())

    def get(self, uid: str) -> PendingPod | None:
        return self._by_uid.get(uid)

    def move(self, record: PendingPod, stage: Stage) -> None:
        """The one place where a stage changes. To its own stage a pod moves when its sort key may
        have changed."""
        before = record.stage
        if stage is not before:
            if stage not in TRANSITIONS[before]:
                raise ValueError(f"pod {record.pod.key} is {before.value}: not to be {stage.value}")
            self._leave(record)
            record.stage = stage
            self.counts[before] -= 1
            self.counts[stage] += 1
        self._enter(record)

    def wait_until(self, record: PendingPod, deadline: Deadline) -> None:
        """Until then or until its stage changes; who leaves the stage has no deadlines left."""
        record.deadlines[deadline.waits_for] = deadline
        self._entry_count += 1
        self._deadlines.push(deadline.at, self._entry_count, (record, deadline))

    def next_deadline(self) -> tuple[PendingPod, Deadline] | None:
        return self._deadlines.first()

    def _leave(self, record: PendingPod) -> None:
        record.entry = 0
        if record.deadlines:
            record.deadlines = {}
        if record.stage is Stage.UNSCHEDULABLE:
            group = self.unschedulable[record.group]
            del group[record.uid]
            if not group:
                del self.unschedulable[record.group]
        elif record.stage is Stage.NOT_PENDING:
            self._by_uid[record.uid] = record

    def _enter(self, record: PendingPod) -> None:
        match record.stage:
            case Stage.ACTIVE:
                self._push(self.active, self._sort_key(record), record)
            case Stage.BACKOFF:
                self._push(self.backoff, self._key_in_backoff(record), record)
            case Stage.ERROR_BACKOFF:
                self._push(self.error_backoff, self._key_in_backoff(record), record)
            case Stage.UNSCHEDULABLE:
                record.group = (record.retry_on, record.rejected_by, record.signature)
                self.unschedulable.setdefault(record.group, {})[record.uid] = record
            case Stage.NOT_PENDING:
                del self._by_uid[record.uid]

    def _push(self, heap: "_Heap[PendingPod]", key: Any, record: PendingPod) -> None:
        self._entry_count += 1
        record.entry = self._entry_count
        heap.push(key, record.entry, record)

    def _key_in_backoff(self, record: PendingPod) -> tuple[float, Any]:
        return record.backoff_until, self._sort_key(record)


class _Heap(Generic[T]):
    """A heap whose entries may become void: nothing is taken out of its middle."""

    def __init__(self, is_valid: Callable[[int, T], bool]) -> None:
        self._is_valid = is_valid
        self._entries: list[tuple[Any, int, T]] = []
        self._clean_at = _FEW_ENTRIES

    def push(self, key: Any, number: int, item: T) -> None:
        """Of equal keys, the entry with the lower number comes first."""
        heapq.heappush(self._entries, (key, number, item))
        if len(self._entries) > self._clean_at:
            self._drop_void()

    def first(self) -> T | None:
        while self._entries:
            _, number, item = self._entries[0]
            if self._is_valid(number, item):
                return item
            heapq.heappop(self._entries)
        return None

    def _drop_void(self) -> None:
        """A standby never looks at the head, so void entries would stay for ever."""
        self._entries = [each for each in self._entries if self._is_valid(*each[1:])]
        heapq.heapify(self._entries)
        self._clean_at = max(_FEW_ENTRIES, 2 * len(self._entries))


def _is_newest(number: int, record: PendingPod) -> bool:
    return record.entry == number


def _is_awaited(_: int, each: tuple[PendingPod, Deadline]) -> bool:
    record, deadline = each
    return record.deadlines.get(deadline.waits_for) is deadline


def memory_of(memories: Mapping[str, Any], plugin: Any) -> dict[str, Any]:
    """What this plugin said to remember about the pod, as the keyword that it is handed as."""
    memory = memories.get(plugin.name)
    return {} if memory is None else {"memory": memory}
