"""A queue and the pods in it, without a machine around them."""

from typing import Any

from lowtide.framework.plugin import Pod
from lowtide.plugins.priority_sort import PrioritySort
from lowtide.plugins.scheduling_gates import SchedulingGates
from lowtide.scheduler.pods import PendingPod, Pods, Stage
from lowtide.scheduler.queue import Queue
from lowtide.testing import make_profile

PROFILE = make_profile([PrioritySort(), SchedulingGates()])


class QueueOfPods(Queue):
    """Pods come to it as the watch tells of them."""

    def __init__(self, **options: Any) -> None:
        self.pods = Pods(PrioritySort())
        super().__init__(self.pods, **options)

    def comes(self, pod: Pod, now: float) -> None:
        self.add(PendingPod(pod, pod.uid, PROFILE, first_seen_at=now, queued_at=now))

    def changes(self, pod: Pod, now: float) -> None:
        record = self.pods.by_uid.get(pod.uid)
        assert record is not None
        self.update(record, pod, now)

    def goes(self, uid: str) -> PendingPod | None:
        record = self.pods.by_uid.get(uid)
        if record is not None:
            self.pods.move(record, Stage.NOT_PENDING)
        return record
