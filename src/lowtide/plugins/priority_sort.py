"""PrioritySort: the pod of higher priority first, then the one that came earlier."""

from typing import Protocol

from lowtide.framework.plugin import Pod


class Queued(Protocol):
    """What the queue says of a waiting pod."""

    @property
    def pod(self) -> Pod: ...
    @property
    def queued_at(self) -> float: ...


class PrioritySort:
    name = "PrioritySort"

    def sort_key(self, queued: Queued) -> tuple[int, float]:
        return (-queued.pod.spec.priority, queued.queued_at)
