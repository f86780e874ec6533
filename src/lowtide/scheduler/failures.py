"""Attempts that end without a binding: the pod goes back into the queue, and its condition and an
Event say why. Used by the machine and by the binding cycle."""

from lowtide.framework.asking import Asking
from lowtide.framework.change import OBJECTS
from lowtide.framework.decision import Decision
from lowtide.framework.profile import NO_PLUGIN
from lowtide.scheduler.actions import (
    Action,
    AttemptFailed,
    Decided,
    WriteCondition,
    failure_event,
)
from lowtide.scheduler.nominations import Nominations
from lowtide.scheduler.pods import PendingPod
from lowtide.scheduler.queue import Queue

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class Failures:
    def __init__(self, queue: Queue, nominations: Nominations) -> None:
        self._queue = queue
        self._nominations = nominations

    def no_node(
        self, record: PendingPod, decision: Decision, asking: Asking, now: float
    ) -> list[Action]:
        """The pod is tried again after a change that may help; without nodes, after a backoff."""
        self._nominations.decided(decision, record, now)
        if decision.node_count == 0:
            self._queue.retry(record, now)
        else:
            rejected_by = decision.rejected_by
            retry_on = record.profile.retry_on(rejected_by, decision.touched)
            until = record.first_seen_at + decision.gives_way_after
            self._queue.park(record, rejected_by, retry_on, now, until=until)
        decided = Decided(decision, record.attempts, record.first_seen_at, asking.spent)
        return [decided, *self._reports(record, UNSCHEDULABLE, decision.fit_error_final)]

    def error(self, record: PendingPod, error: str, now: float) -> list[Action]:
        """An error that is not the pod's fault; it is tried again after a backoff."""
        self._nominations.drop(record.uid, now)
        self._queue.retry(record, now)
        failed = AttemptFailed(record.pod, error)
        return [failed, *self._reports(record, SCHEDULER_ERROR, error)]

    def unreadable(self, record: PendingPod, error: str, now: float) -> list[Action]:
        """The pod cannot be read, or an object that it uses, such as a claim. Only a change of one
        of them can help."""
        self._queue.park(record, frozenset([NO_PLUGIN]), OBJECTS, now)
        return self._reports(record, UNSCHEDULABLE, error)

    def _reports(self, record: PendingPod, reason: str, message: str) -> list[Action]:
        """The Event and the condition with this message, and the pod's nomination."""
        nominated = self._nominations.to_write(record)
        condition = WriteCondition(record.pod, reason, message, nominated)
        event = failure_event(record.pod, message)
        return [event, condition] if condition.is_news else [event]


def rejected_after_all(plugin_name: str, reason: str, decision: Decision) -> Decision:
    """Reserve or Permit rejected the chosen node. Like kube-scheduler, report only that node."""
    return Decision(
        pod=decision.pod,
        scheduler_name=decision.scheduler_name,
        node_name=None,
        node_count=1,
        feasible_count=0,
        rejected_by=frozenset([plugin_name]),
        reason_counts={reason: 1},
    )
