"""When pending pods have their turns: at once, after a backoff, when a change may help, or when
no plugin gates them any more.

The machine adds pods and pops them. It parks a pod that fits nowhere until a change wakes it, and
retries a pod after an error.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator

from lowtide.framework.change import Change
from lowtide.objects.pod import Pod
from lowtide.scheduler.pods import QUEUED, Group, PendingPod, Pods, Stage

INITIAL_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 10.0
LONGEST_PARKED_SECONDS = 300.0

ATTEMPT_FAILED = "ScheduleAttemptFailure"

# Whether a change may help a pod that these plugins rejected.
MayHelp = Callable[[PendingPod, frozenset[str], Change], bool]

# By stage: the queue in kube-scheduler's metrics.
_METRIC_QUEUE = {
    Stage.ACTIVE: "active",
    Stage.BACKOFF: "backoff",
    Stage.ERROR_BACKOFF: "backoff",
    Stage.UNSCHEDULABLE: "unschedulable",
}


class Queue:
    def __init__(
        self,
        pods: Pods,
        *,
        may_help: MayHelp = lambda record, rejected_by, change: True,
        initial_backoff_seconds: float = INITIAL_BACKOFF_SECONDS,
        max_backoff_seconds: float = MAX_BACKOFF_SECONDS,
    ) -> None:
        self._pods = pods
        self._may_help = may_help
        self._initial_backoff_seconds = initial_backoff_seconds
        self._max_backoff_seconds = max_backoff_seconds
        self._next_flush_at = math.inf
        self.incoming: Counter[tuple[str, str]] = Counter()  # by queue and event, since the start

    def __iter__(self) -> Iterator[PendingPod]:
        return (record for record in self._pods if record.stage in QUEUED)

    def lengths(self) -> dict[str, int]:
        counts = self._pods.counts
        return {
            "active": counts[Stage.ACTIVE],
            "backoff": counts[Stage.BACKOFF] + counts[Stage.ERROR_BACKOFF],
            "unschedulable": counts[Stage.UNSCHEDULABLE],
            "gated": counts[Stage.GATED] + counts[Stage.EVICTING],
        }

    # Pods arrive and change.

    def add(self, record: PendingPod) -> None:
        """Add a pod that was not pending before."""
        self._enter(record, Stage.ACTIVE, because="UnschedulablePodAdd")

    def update(self, record: PendingPod, pod: Pod, now: float) -> None:
        """Keep the pod's new version. A pod that waits for something other than its backoff is
        tried again if its signature changed: it may fit now."""
        if record.stage not in (Stage.GATED, Stage.EVICTING, Stage.UNSCHEDULABLE):
            record.update(pod)
            self._enter(record, record.stage)
            return
        before = record.signature
        record.update(pod)
        if record.signature != before:
            self._enter(record, self._after_backoff(record, now), because="UnschedulablePodUpdate")

    # Pods have their turns and come back.

    def pop(self, now: float) -> PendingPod | None:
        """The next pod to place.

        If no pod is active, a pod in backoff has its turn early, but none in error backoff.
        """
        self._release(now)
        record = self._pods.active.first() or self._pods.backoff.first()
        if record is not None:
            self._pods.move(record, Stage.DECIDING)
            record.attempts += 1
            record.attempt_began_at = now
        return record

    def park(
        self,
        record: PendingPod,
        rejected_by: frozenset[str],
        retry_on: int,
        now: float,
        *,
        until: float = math.inf,
    ) -> None:
        """The pod fits nowhere. It waits for one of the `retry_on` changes, but at most `until`,
        and never longer than kube-scheduler lets a pod wait."""
        record.rejected_by = rejected_by
        record.retry_on = retry_on
        record.unschedulable_count += 1
        record.error_count = 0
        self._back_off(record, record.unschedulable_count, now)
        record.parked_until = min(until, now + LONGEST_PARKED_SECONDS)
        self._next_flush_at = min(self._next_flush_at, record.parked_until)
        self._enter(record, Stage.UNSCHEDULABLE, because=ATTEMPT_FAILED)

    def retry(self, record: PendingPod, now: float) -> None:
        """An error that is not the pod's fault: try the pod again after a backoff that grows with
        its errors in a row, not with its unschedulable attempts."""
        record.rejected_by = frozenset()
        record.error_count += 1
        self._back_off(record, record.error_count, now)
        self._enter(record, Stage.ERROR_BACKOFF, because=ATTEMPT_FAILED)

    def wake(self, change: Change, now: float) -> int:
        """Try again the unschedulable pods that this change may help. Return their number."""
        woken = [
            record
            for group, records in self._pods.unschedulable.items()
            if group[0] & change.what and self._may_profit(group, records, change)
            for record in records.values()
        ]
        if woken:
            self._wake_all(woken, now, change.event)
        return len(woken)

    def _may_profit(self, group: Group, records: dict[str, PendingPod], change: Change) -> bool:
        """One pod answers for its group: plugins read no more of a pod than its signature."""
        record = next(iter(records.values()))
        if (
            change.highest_priority is not None
            and record.pod.spec.priority > change.highest_priority
        ):
            return False
        return self._may_help(record, group[1], change)

    def victims_are_gone(self, record: PendingPod, now: float) -> None:
        """Try the pod again if it was woken meanwhile; if not, it still waits for a change."""
        if record.stage is Stage.EVICTING:
            self._wake_all([record], now, because="AssignedPodDelete")

    def eviction_failed(self, record: PendingPod, now: float) -> None:
        """Try the pod again after a backoff: there may be no change that wakes it."""
        if record.stage in (Stage.UNSCHEDULABLE, Stage.EVICTING):
            self.retry(record, now)

    # Time passes.

    def is_ready(self, now: float) -> bool:
        self._release(now)
        return bool(self._pods.active.first() or self._pods.backoff.first())

    def next_change_at(self) -> float:
        """When time alone makes a pod ready; infinity if nothing waits for time."""
        first = self._pods.error_backoff.first()
        retry_at = first.backoff_until if first else math.inf
        return min(retry_at, self._next_flush_at)

    # Moves between stages.

    def _release(self, now: float) -> None:
        for heap in (self._pods.backoff, self._pods.error_backoff):
            while (record := heap.first()) is not None and record.backoff_until <= now:
                self._enter(record, Stage.ACTIVE, because="BackoffComplete")
        if now >= self._next_flush_at:
            parked = [
                each for group in self._pods.unschedulable.values() for each in group.values()
            ]
            old = [record for record in parked if record.parked_until <= now]
            self._wake_all(old, now, because="UnschedulableTimeout")
            self._next_flush_at = min(
                (record.parked_until for record in parked if record.parked_until > now),
                default=math.inf,
            )

    def _wake_all(self, woken: list[PendingPod], now: float, because: str) -> None:
        for record in woken:
            self._enter(record, self._after_backoff(record, now), because)

    def _after_backoff(self, record: PendingPod, now: float) -> Stage:
        return Stage.ACTIVE if record.backoff_until <= now else Stage.BACKOFF

    def _back_off(self, record: PendingPod, failures: int, now: float) -> None:
        seconds = min(
            self._initial_backoff_seconds * 2.0 ** min(failures - 1, 30), self._max_backoff_seconds
        )
        record.queued_at = now
        # kube-scheduler rounds down to whole seconds and checks once a second.
        record.backoff_until = math.floor(now + seconds) + 1.0

    def _enter(self, record: PendingPod, stage: Stage, because: str = "") -> None:
        """Move the pod to this stage, or to EVICTING or GATED if something holds it. Without
        `because` it was in this stage before: only its sort key or its gates may have changed."""
        if stage is Stage.ACTIVE or stage is Stage.BACKOFF:
            if record.eviction is not None:
                stage = Stage.EVICTING
            elif record.profile.gate(record.pod) is not None:
                stage = Stage.GATED
        self._pods.move(record, stage)
        if because and stage in _METRIC_QUEUE:
            self.incoming[_METRIC_QUEUE[stage], because] += 1
