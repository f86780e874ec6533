"""PrioritySort: sorts the queue by priority, highest first, then by time, earliest first."""

from lowtide.framework.plugin import Queued


class PrioritySort:
    name = "PrioritySort"

    def sort_key(self, queued: Queued) -> tuple[int, float]:
        return (-queued.pod.spec.priority, queued.queued_at)
