"""PrioritySort: the pod of higher priority first, then the one that came earlier."""

from lowtide.framework.plugin import Queued


class PrioritySort:
    name = "PrioritySort"

    def sort_key(self, queued: Queued) -> tuple[int, float]:
        return (-queued.pod.spec.priority, queued.queued_at)
