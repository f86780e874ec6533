"""Metrics and log lines about each attempt to schedule a pod. Called by live."""

from collections.abc import Callable

from lowtide.framework.plugin import Pod
from lowtide.logs import Log
from lowtide.scheduler.actions import Bind, Decided
from lowtide.scheduler.metrics import SchedulerMetrics
from lowtide.scheduler.pods import Pods

log = Log("scheduler")


class Attempts:
    def __init__(self, pods: Pods, metrics: SchedulerMetrics, clock: Callable[[], float]) -> None:
        self._pods = pods
        self._metrics = metrics
        self._clock = clock
        self._decided_at: dict[str, float] = {}  # by uid: pods with a node, not bound yet
        self.turn_began_at = 0.0

    def began_at(self, pod: Pod) -> float:
        """When the pod's attempt began. For a pod that is gone, when the last turn began."""
        record = self._pods.by_uid.get(pod.uid)
        if record is None or not record.attempts:
            return self.turn_began_at
        return record.attempt_began_at

    def decided(self, decided: Decided) -> None:
        decision, uid = decided.decision, decided.decision.pod.uid
        now, profile = self._clock(), decision.scheduler_name
        is_placed = decision.node_name is not None
        self._metrics.plugins_asked(profile, decided.spent.by_method, is_placed=is_placed)
        if decision.post_filtered is not None:
            self._metrics.preemption_attempted()
        if is_placed:
            self._decided_at[uid] = now
        else:
            self._decided_at.pop(uid, None)
            seconds = now - self.began_at(decision.pod)
            self._metrics.pod_unschedulable(profile, seconds_attempt=seconds)

    def failed(self, pod: Pod) -> None:
        self._decided_at.pop(pod.uid, None)
        seconds = self._clock() - self.began_at(pod)
        self._metrics.attempt_failed(pod.spec.scheduler_name, seconds_attempt=seconds)

    def bound(self, bind: Bind) -> None:
        """Called before the machine gets the outcome: the record still has its decision."""
        decided_at = self._decided_at.pop(bind.pod.uid, None)
        record = self._pods.by_uid.get(bind.pod.uid)
        if decided_at is None or record is None or record.decision is None:
            return  # the pod is gone
        decision, now = record.decision, self._clock()
        if log.enabled(2):
            log.v(
                2,
                "Successfully bound pod to node",
                pod=bind.pod.key,
                node=bind.node_name,
                evaluatedNodes=decision.node_count,
                feasibleNodes=decision.feasible_count,
            )
        self._metrics.pod_scheduled(
            decision.scheduler_name,
            attempts=record.attempts,
            seconds_algorithm=decided_at - record.attempt_began_at,
            seconds_attempt=now - record.attempt_began_at,
            seconds_since_first_seen=now - record.first_seen_at,
        )

    def forget(self, pod: Pod) -> None:
        self._decided_at.pop(pod.uid, None)
